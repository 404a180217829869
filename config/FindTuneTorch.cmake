# Finds LibTorch as the Python wheel ships it, without PyTorch's own package files: with a CUDA wheel
# those demand the CUDA toolkit, which a CPU build does not need.
#
# Looks in TUNE_TORCH_DIR (variable or environment; then nowhere else), the folder that
# config/setup.sh makes, and where the active python keeps its torch. A folder is good when it is, or
# holds, `torch/` of version 2.11 or newer.
#
# TuneTorch_FOUND, TuneTorch_VERSION, TuneTorch_FOLDER (the folder torch/) and the target
# TuneTorch::torch: headers, definitions, libtorch_cpu and libc10. Where the wheel is one for CUDA and
# the toolkit is there, and the right nccl.h beside LibTorch or in the toolkit, TuneTorch::cuda adds what the GPU part needs; else
# TuneTorch_NO_CUDA says why not.

set(_tune_torch_minimum 2.11)
set(_tune_torch_setup 2.11.0)  # what config/setup.sh installs

set(_tune_torch_given "${TUNE_TORCH_DIR}")
if(NOT _tune_torch_given)
  set(_tune_torch_given "$ENV{TUNE_TORCH_DIR}")
endif()

function(_tune_torch_candidates result)
  if(_tune_torch_given)
    set(${result} "${_tune_torch_given}/torch" "${_tune_torch_given}" PARENT_SCOPE)
    return()
  endif()
  if(DEFINED ENV{TUNE_CACHE_DIR})
    set(cache "$ENV{TUNE_CACHE_DIR}")
  elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(cache "$ENV{XDG_CACHE_HOME}/tune")
  else()
    set(cache "$ENV{HOME}/.cache/tune")
  endif()
  set(candidates "${cache}/torch-${_tune_torch_setup}/torch")
  # Asks where it is without loading it, which would take seconds.
  execute_process(
    COMMAND python3 -c
      "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(python_torch)
    list(APPEND candidates "${python_torch}")
  endif()
  set(${result} "${candidates}" PARENT_SCOPE)
endfunction()

# The version of the torch/ folder, or why it is no good.
function(_tune_torch_check folder version complaint)
  set(${version} "" PARENT_SCOPE)
  set(wheel "torch==${_tune_torch_setup} (pip install --no-deps --target DIR, as config/setup.sh does)")
  if(NOT EXISTS "${folder}/lib/libtorch_cpu.so" OR NOT EXISTS "${folder}/include/torch")
    set(${complaint} "${folder}: there is no LibTorch" PARENT_SCOPE)
    return()
  endif()
  set(found "unknown")
  if(EXISTS "${folder}/version.py")
    file(STRINGS "${folder}/version.py" line REGEX "^__version__ *=")
    if(line MATCHES "([0-9]+\\.[0-9]+(\\.[0-9]+)?)")
      set(found "${CMAKE_MATCH_1}")
    endif()
  elseif(EXISTS "${folder}/build-version")
    file(STRINGS "${folder}/build-version" line LIMIT_COUNT 1)
    if(line MATCHES "^([0-9]+\\.[0-9]+(\\.[0-9]+)?)")
      set(found "${CMAKE_MATCH_1}")
    endif()
  endif()
  if(found STREQUAL "unknown" OR found VERSION_LESS _tune_torch_minimum)
    set(${complaint} "${folder}: its version is ${found}, ${_tune_torch_minimum} or newer is wanted: ${wheel}"
        PARENT_SCOPE)
  elseif(NOT EXISTS "${folder}/include/torch/csrc/distributed/c10d/reducer.hpp")
    set(${complaint}
        "${folder}: torch ${found} without torch/csrc/distributed/c10d/reducer.hpp (built without distributed training): install the wheel ${wheel}"
        PARENT_SCOPE)
  else()
    set(${version} "${found}" PARENT_SCOPE)
  endif()
endfunction()

_tune_torch_candidates(_tune_torch_folders)
set(_tune_torch_complaints "")
unset(TuneTorch_FOLDER)
unset(TuneTorch_VERSION)
foreach(_tune_torch_folder IN LISTS _tune_torch_folders)
  _tune_torch_check("${_tune_torch_folder}" TuneTorch_VERSION _tune_torch_complaint)
  if(TuneTorch_VERSION)
    get_filename_component(TuneTorch_FOLDER "${_tune_torch_folder}" REALPATH)
    break()
  endif()
  string(APPEND _tune_torch_complaints "\n  ${_tune_torch_complaint}")
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TuneTorch
  REQUIRED_VARS TuneTorch_FOLDER VERSION_VAR TuneTorch_VERSION
  REASON_FAILURE_MESSAGE "looked in:${_tune_torch_complaints}
Either run `bash config/setup.sh`, which installs LibTorch, or set TUNE_TORCH_DIR to a folder that holds torch/, or build without torch: -DTUNE_WITH_TORCH=OFF")

if(TuneTorch_FOUND AND NOT TARGET TuneTorch::torch)
  foreach(_tune_torch_library c10 torch_cpu)
    add_library(TuneTorch::${_tune_torch_library} SHARED IMPORTED)
    set_target_properties(TuneTorch::${_tune_torch_library} PROPERTIES
      IMPORTED_LOCATION "${TuneTorch_FOLDER}/lib/lib${_tune_torch_library}.so"
      IMPORTED_SONAME lib${_tune_torch_library}.so)
  endforeach()
  add_library(TuneTorch::torch INTERFACE IMPORTED)
  target_include_directories(TuneTorch::torch SYSTEM INTERFACE
    "${TuneTorch_FOLDER}/include" "${TuneTorch_FOLDER}/include/torch/csrc/api/include")
  target_compile_definitions(TuneTorch::torch INTERFACE
    USE_DISTRIBUTED USE_C10D_GLOO USE_RPC USE_TENSORPIPE)
  target_link_libraries(TuneTorch::torch INTERFACE TuneTorch::torch_cpu TuneTorch::c10)
  # What libtorch_cpu.so needs it finds by its own RPATH, which the linker does not follow.
  target_link_options(TuneTorch::torch INTERFACE LINKER:--allow-shlib-undefined)
endif()

# The NCCL that this LibTorch was built with, as its wheel's metadata names it; "" when unknown.
function(_tune_torch_nccl result)
  set(${result} "" PARENT_SCOPE)
  file(GLOB metadata "${TuneTorch_FOLDER}/../torch-*.dist-info/METADATA")
  if(NOT metadata)
    return()
  endif()
  list(GET metadata 0 metadata)
  file(STRINGS "${metadata}" line REGEX "^Requires-Dist: *nvidia-nccl" LIMIT_COUNT 1)
  if(line MATCHES "==([0-9]+\\.[0-9]+\\.[0-9]+)")
    set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()

# The NCCL of a folder that holds nccl.h.
function(_tune_nccl_header folder version code)
  file(STRINGS "${folder}/nccl.h" lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH|VERSION_CODE) ")
  foreach(part MAJOR MINOR PATCH VERSION_CODE)
    string(REGEX MATCH "NCCL_${part} ([0-9]+)" ignored "${lines}")
    set(${part} "${CMAKE_MATCH_1}")
  endforeach()
  set(${version} "${MAJOR}.${MINOR}.${PATCH}" PARENT_SCOPE)
  set(${code} "${VERSION_CODE}" PARENT_SCOPE)
endfunction()

# Sets TuneTorch_NO_CUDA or makes TuneTorch::cuda.
function(_tune_torch_cuda)
  if(NOT EXISTS "${TuneTorch_FOLDER}/lib/libtorch_cuda.so")
    set(TuneTorch_NO_CUDA "LibTorch in ${TuneTorch_FOLDER} is one for CPUs" PARENT_SCOPE)
    return()
  endif()
  # pip's torch brings the nccl.h that fits and, beside the toolkit's, most headers of CUDA: those of
  # the compiler, by which a whole folder is known, it has not.
  get_filename_component(wheels "${TuneTorch_FOLDER}/../nvidia" ABSOLUTE)
  file(GLOB wheel_includes "${wheels}/cu[0-9]*/include")
  set(toolkits "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda /usr/local/cuda-13.0)
  find_path(TUNE_NCCL_INCLUDE nccl.h HINTS "${wheels}/nccl/include" ${toolkits}
    PATH_SUFFIXES include)
  find_path(TUNE_CUDA_INCLUDE crt/host_defines.h HINTS ${wheel_includes} ${toolkits}
    PATH_SUFFIXES include)
  mark_as_advanced(TUNE_CUDA_INCLUDE TUNE_NCCL_INCLUDE)
  if(NOT TUNE_CUDA_INCLUDE)
    set(TuneTorch_NO_CUDA "there is no CUDA toolkit (CUDA_HOME may name it)" PARENT_SCOPE)
    return()
  endif()
  if(NOT TUNE_NCCL_INCLUDE)
    set(TuneTorch_NO_CUDA
      "there is no nccl.h: not beside LibTorch, where `pip install torch` puts it, nor in the CUDA toolkit (TUNE_NCCL_INCLUDE may name its folder)"
      PARENT_SCOPE)
    return()
  endif()
  set(includes "${TUNE_CUDA_INCLUDE}")
  if(EXISTS "${TUNE_CUDA_INCLUDE}/cccl")
    list(APPEND includes "${TUNE_CUDA_INCLUDE}/cccl")
  endif()
  list(APPEND includes ${wheel_includes})
  foreach(header cuda_runtime_api.h cublas_v2.h cusolverDn.h cusparse.h)
    find_path(found_${header} ${header} PATHS ${includes} NO_DEFAULT_PATH NO_CACHE)
    if(NOT found_${header})
      set(TuneTorch_NO_CUDA "there is no ${header} in ${includes}: install the whole CUDA toolkit or `pip install torch`"
        PARENT_SCOPE)
      return()
    endif()
  endforeach()
  _tune_torch_nccl(wanted)
  _tune_nccl_header("${TUNE_NCCL_INCLUDE}" found code)
  if(wanted AND NOT wanted VERSION_EQUAL found)
    set(TuneTorch_NO_CUDA
      "LibTorch was built with NCCL ${wanted}, ${TUNE_NCCL_INCLUDE}/nccl.h is ${found}: set TUNE_NCCL_INCLUDE to the folder with that of ${wanted}"
      PARENT_SCOPE)
    return()
  endif()
  foreach(library c10_cuda torch_cuda)
    add_library(TuneTorch::${library} SHARED IMPORTED)
    set_target_properties(TuneTorch::${library} PROPERTIES
      IMPORTED_LOCATION "${TuneTorch_FOLDER}/lib/lib${library}.so"
      IMPORTED_SONAME lib${library}.so)
  endforeach()
  add_library(TuneTorch::cuda INTERFACE IMPORTED)
  target_include_directories(TuneTorch::cuda SYSTEM INTERFACE
    "${TUNE_NCCL_INCLUDE}" ${includes})
  target_compile_definitions(TuneTorch::cuda INTERFACE USE_C10D_NCCL)
  if(wanted)
    target_compile_definitions(TuneTorch::cuda INTERFACE TUNE_NCCL_VERSION_CODE=${code})
  endif()
  # Linked though not all of it is called: loading it is what brings CUDA to LibTorch.
  target_link_libraries(TuneTorch::cuda INTERFACE
    -Wl,--no-as-needed TuneTorch::torch_cuda TuneTorch::c10_cuda)
endfunction()

if(TuneTorch_FOUND AND NOT TARGET TuneTorch::cuda)
  _tune_torch_cuda()
endif()
