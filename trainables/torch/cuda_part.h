// Where the library that speaks to CUDA and NCCL (cuda/cuda_part.cc) meets the rest, which must not
// need either. It is loaded at run time and exports one C function that fills in this table.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

namespace tune {

struct CudaPart {
  // Empty when CUDA works and NCCL is the version this was compiled with, else what is wrong.
  std::string (*complaint)();
  void (*use_device)(int index);
  // NCCL for this rank on the GPU `index`; connects at the first collective.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl)(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int rank, int size,
                                                 std::chrono::milliseconds timeout);
};

inline constexpr const char* kCudaPartFunction = "tune_cuda_part";

// The table of the loaded library; see load_cuda().
const CudaPart& cuda_part();

}  // namespace tune
