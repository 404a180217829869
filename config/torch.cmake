# LibTorch for the CPU build as imported targets: tune_torch_cpu. The wheel's own TorchConfig.cmake
# demands the CUDA toolkit even for CPU programs, so it is not used.
#
# Looked for, in this order: TUNE_TORCH_DIR (CMake or environment; a folder that holds torch/), the
# folder config/setup.sh fills, the active Python's torch.
set(_tune_torch_candidates)
if(TUNE_TORCH_DIR)
  list(APPEND _tune_torch_candidates "${TUNE_TORCH_DIR}")
elseif(DEFINED ENV{TUNE_TORCH_DIR})
  list(APPEND _tune_torch_candidates "$ENV{TUNE_TORCH_DIR}")
else()
  if(DEFINED ENV{TUNE_CACHE_DIR})
    set(_tune_cache "$ENV{TUNE_CACHE_DIR}")
  elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(_tune_cache "$ENV{XDG_CACHE_HOME}/tune")
  else()
    set(_tune_cache "$ENV{HOME}/.cache/tune")
  endif()
  list(APPEND _tune_torch_candidates "${_tune_cache}/torch-2.11.0")
  find_program(_tune_python NAMES python3)
  if(_tune_python AND NOT EXISTS "${_tune_cache}/torch-2.11.0/torch")
    execute_process(
      COMMAND "${_tune_python}" -c
        "import importlib.util, os; s = importlib.util.find_spec('torch'); print(os.path.dirname(os.path.dirname(s.origin)) if s else '')"
      OUTPUT_VARIABLE _tune_python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND _tune_torch_candidates ${_tune_python_torch})
  endif()
endif()

set(TUNE_TORCH_ROOT)
foreach(_candidate IN LISTS _tune_torch_candidates)
  if(EXISTS "${_candidate}/torch/lib/libtorch_cpu.so")
    set(TUNE_TORCH_ROOT "${_candidate}/torch")
    break()
  endif()
endforeach()
if(NOT TUNE_TORCH_ROOT)
  message(FATAL_ERROR
    "LibTorch is not there (looked in: ${_tune_torch_candidates}). Run `bash config/setup.sh`, set "
    "TUNE_TORCH_DIR to a folder that holds torch/, or build without it: -DTUNE_WITH_TORCH=OFF")
endif()
if(NOT EXISTS "${TUNE_TORCH_ROOT}/include/torch/csrc/distributed/c10d/reducer.hpp")
  message(FATAL_ERROR
    "The LibTorch in ${TUNE_TORCH_ROOT} has no torch/csrc/distributed/c10d/reducer.hpp: install the "
    "pip wheel torch 2.11.0 or newer (`bash config/setup.sh`)")
endif()
message(STATUS "LibTorch: ${TUNE_TORCH_ROOT}")

if(NOT TARGET tune_torch_cpu)
  add_library(tune_torch_cpu INTERFACE IMPORTED)
  set_target_properties(tune_torch_cpu PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${TUNE_TORCH_ROOT}/include;${TUNE_TORCH_ROOT}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC;USE_TENSORPIPE"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_LINK_LIBRARIES "${TUNE_TORCH_ROOT}/lib/libtorch_cpu.so;${TUNE_TORCH_ROOT}/lib/libc10.so"
    INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined;-Wl,-rpath,${TUNE_TORCH_ROOT}/lib")
endif()
