# CUDA and NCCL beside a LibTorch that config/FindTuneTorch.cmake has found; a part of that file.

# Where a CUDA toolkit may be.
function(_tune_cuda_toolkits result)
  set(${result} "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda /usr/local/cuda-13.0 PARENT_SCOPE)
endfunction()

# Whether there is a driver or a toolkit.
function(_tune_machine_has_cuda result)
  _tune_cuda_toolkits(toolkits)
  list(TRANSFORM toolkits APPEND "/include/crt/host_defines.h")
  foreach(sign IN LISTS toolkits ITEMS /proc/driver/nvidia/version)
    if(EXISTS "${sign}")
      set(${result} TRUE PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} FALSE PARENT_SCOPE)
endfunction()

# The version of a package that the metadata of LibTorch's wheel wants; "" when there is none.
function(_tune_torch_wanted folder package result)
  set(${result} "" PARENT_SCOPE)
  file(GLOB metadata "${folder}/../torch-*.dist-info/METADATA")
  if(metadata)
    list(GET metadata 0 metadata)
    file(STRINGS "${metadata}" line REGEX "^Requires-Dist: *${package}" LIMIT_COUNT 1)
    set(${result} "${line}" PARENT_SCOPE)
  endif()
endfunction()

# Why a LibTorch cannot load its CUDA part: it has none, or it is of a wheel that wants cuDNN and NCCL
# beside it, and they are not there. "" when it can.
function(_tune_torch_lacks folder result)
  if(NOT EXISTS "${folder}/lib/libtorch_cuda.so")
    set(${result} "libtorch_cuda.so" PARENT_SCOPE)
    return()
  endif()
  set(lacks "")
  foreach(package cudnn nccl)
    _tune_torch_wanted("${folder}" "nvidia-${package}" wanted)
    if(wanted AND NOT EXISTS "${folder}/../nvidia/${package}")
      list(APPEND lacks "nvidia-${package}")
    endif()
  endforeach()
  list(JOIN lacks ", " lacks)
  set(${result} "${lacks}" PARENT_SCOPE)
endfunction()

# The NCCL that this LibTorch was built with, as its wheel's metadata names it; "" when unknown.
function(_tune_torch_nccl result)
  set(${result} "" PARENT_SCOPE)
  _tune_torch_wanted("${TuneTorch_FOLDER}" nvidia-nccl line)
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
  # pip's torch brings the nccl.h that fits and most headers of CUDA: those of the compiler, by which a
  # whole folder is known, are the toolkit's or those of pip's nvidia-cuda-crt.
  get_filename_component(wheels "${TuneTorch_FOLDER}/../nvidia" ABSOLUTE)
  file(GLOB wheel_includes "${wheels}/cu[0-9]*/include")
  _tune_cuda_toolkits(toolkits)
  find_path(TUNE_NCCL_INCLUDE nccl.h HINTS "${wheels}/nccl/include" ${toolkits}
    PATH_SUFFIXES include)
  find_path(TUNE_CUDA_INCLUDE crt/host_defines.h HINTS ${wheel_includes} ${toolkits}
    PATH_SUFFIXES include)
  mark_as_advanced(TUNE_CUDA_INCLUDE TUNE_NCCL_INCLUDE)
  if(NOT TUNE_CUDA_INCLUDE)
    set(TuneTorch_NO_CUDA "there is no CUDA toolkit (CUDA_HOME may name it), and LibTorch has no crt/host_defines.h beside it (`pip install nvidia-cuda-crt` of its version of CUDA)"
      PARENT_SCOPE)
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
  list(REMOVE_DUPLICATES includes)
  foreach(header cuda_runtime_api.h cublas_v2.h cusolverDn.h cusparse.h)
    find_path(found_${header} ${header} PATHS ${includes} NO_DEFAULT_PATH NO_CACHE)
    if(NOT found_${header})
      list(JOIN includes ", " where)  # a list would be several definitions of the compiler
      set(TuneTorch_NO_CUDA "there is no ${header} in ${where}: install the whole CUDA toolkit or `pip install torch`"
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
