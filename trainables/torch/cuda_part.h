// Where the library that speaks to CUDA and NCCL (cuda/cuda_part.cc) meets the rest, which must not
// need either. It is loaded at run time and exports one C function that fills in this table.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainables/torch/step_graph.h"

namespace tune {

struct CudaPart {
  // LibTorch keeps for ever what it finds when it is first asked for CUDA: whether that was before
  // this library was loaded, so that it finds none.
  bool (*was_asked_too_early)();
  // Empty when CUDA works and NCCL is the version this was compiled with, else what is wrong.
  std::string (*complaint)();
  std::string (*use_device)(int index);  // makes it the current one; empty, or what is wrong
  std::string (*gpu_id)(int index);      // a number of its own among all GPUs, as bytes
  // NCCL for this rank on the current GPU; connects at the first collective. `begun` is told of a
  // collective, and of another as soon as that is found to be over, which `is_over` says.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl)(
      const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
      std::chrono::milliseconds timeout,
      const std::function<void(std::function<bool()> is_over)>& begun);
  void (*seed)(std::uint64_t seed);  // the generators of all GPUs
  at::Generator (*generator)();      // of the GPU that is the current one
  // Of the current GPU's memory LibTorch takes no more than this part, above 0 and at most 1; an
  // allocation beyond it throws c10::OutOfMemoryError.
  void (*limit_memory)(double part);
  void (*give_back_memory)();  // what LibTorch keeps of freed tensors
  // Tensors of the CPU on the current GPU, for what is queued there from now on. They are copied on
  // a stream of their own: while what was queued before still computes, if they lie in pinned
  // memory.
  std::vector<at::Tensor> (*copied_beside)(const std::vector<at::Tensor>& tensors);
  std::unique_ptr<DeviceGraph> (*make_graph)();  // of the current GPU
};

inline constexpr const char* kCudaPartFunction = "tune_cuda_part";

// The table of the library, which is loaded where it is not yet; see load_cuda().
const CudaPart& cuda_part();
// Null where nothing has loaded it.
const CudaPart* loaded_cuda_part();
// Now, or as soon as CUDA is loaded.
void seed_cuda(std::uint64_t seed);

}  // namespace tune
