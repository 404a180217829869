// The device a rank computes on. LibTorch's CUDA part is loaded only where it is asked for here: a
// worker without GPUs pays nothing for it.
#pragma once

#include <c10/core/Device.h>

namespace tune {

// This rank's own device: a GPU when it sees any (those that CUDA_VISIBLE_DEVICES names or, where
// it is not set, all of the node; TUNE_DEVICE_INDEX or LOCAL_RANK picks one, else the first), else
// the CPU. For a GPU this loads CUDA and makes it the current one. Throws Error (kBadInput) when it
// sees GPUs that cannot be used, and says why.
//
// Of a GPU that the rank shares, LibTorch takes the rank's part of the memory at most, which the
// agent names in TUNE_GPU_PART (0.25, say; a user's own value of it counts): beyond it a rank runs
// out of memory, and not the others.
c10::Device own_device();

// Loads LibTorch's CUDA part and our own beside it, once. Throws Error (kBadInput) where this was
// built without it or no GPU works.
void load_cuda();

// Those that CUDA_VISIBLE_DEVICES names or, where it is not set, all of the node.
int visible_gpus();

// Whether a GPU of CUDA_VISIBLE_DEVICES is a MIG instance: NCCL connects none of them.
bool sees_mig_instance();

}  // namespace tune
