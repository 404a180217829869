// The libraries of CUDA, opened at run time: LibTorch's CUDA part, which brings cuDNN, cuBLAS and
// NCCL, and our own beside it (cuda/cuda_part.cc). Opening them calls nothing of CUDA, which no
// fork may have seen.
#pragma once

#include <string>

namespace tune {

struct CudaLibraries {
  void* part = nullptr;     // our own; null: it cannot be opened
  std::string causes = {};  // why one of them is not open, a line each
};
CudaLibraries open_cuda_libraries();

// For the zygote: opening takes seconds, and as much memory in each process that does it; trials
// are forked with all of it. Returns a notice for the user, or nothing; LibTorch for CPUs has
// nothing to open.
std::string open_cuda_libraries_before_forks();

}  // namespace tune
