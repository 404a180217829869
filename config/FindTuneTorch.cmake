# Finds LibTorch as the Python wheel ships it, without PyTorch's own package files: with a CUDA wheel
# those demand the CUDA toolkit, which a CPU build does not need.
#
# Looks in TUNE_TORCH_DIR (variable or environment; then nowhere else), the folder that
# config/setup.sh makes, and where the active python keeps its torch. A folder is good when it is, or
# holds, `torch/` of version 2.11 or newer. Where the machine has CUDA, the first of those that can
# load their CUDA part is taken, if there is one: the set-up's LibTorch has no cuDNN and no NCCL.
#
# TuneTorch_FOUND, TuneTorch_VERSION, TuneTorch_FOLDER (the folder torch/) and the target
# TuneTorch::torch: headers, definitions, libtorch_cpu and libc10. Where the wheel is one for CUDA and
# the toolkit is there, and the right nccl.h beside LibTorch or in the toolkit, TuneTorch::cuda adds what the GPU part needs; else
# TuneTorch_NO_CUDA says why not.

include(${CMAKE_CURRENT_LIST_DIR}/TuneTorchCuda.cmake)

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

# The version of the torch/ folder, or why it cannot be used.
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
_tune_machine_has_cuda(_tune_torch_for_cuda)
foreach(_tune_torch_folder IN LISTS _tune_torch_folders)
  _tune_torch_check("${_tune_torch_folder}" _tune_torch_version _tune_torch_complaint)
  if(NOT _tune_torch_version)
    string(APPEND _tune_torch_complaints "\n  ${_tune_torch_complaint}")
    continue()
  endif()
  _tune_torch_lacks("${_tune_torch_folder}" _tune_torch_missing)
  if(TuneTorch_VERSION AND _tune_torch_missing)
    continue()
  endif()
  if(TuneTorch_VERSION)
    message(STATUS "${TuneTorch_FOLDER} has no CUDA part that can be loaded: ${_tune_torch_folder} is taken")
  endif()
  get_filename_component(TuneTorch_FOLDER "${_tune_torch_folder}" REALPATH)
  set(TuneTorch_VERSION ${_tune_torch_version})
  if(NOT _tune_torch_missing OR NOT _tune_torch_for_cuda)
    break()
  endif()
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
  # libtorch_cpu.so finds its libraries by its own RPATH, which the linker does not follow.
  target_link_options(TuneTorch::torch INTERFACE LINKER:--allow-shlib-undefined)
endif()

if(TuneTorch_FOUND AND NOT TARGET TuneTorch::cuda)
  _tune_torch_cuda()
endif()
