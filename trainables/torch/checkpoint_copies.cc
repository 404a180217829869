#include "trainables/torch/checkpoint_copies.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace tune {
namespace {

// Archives hold tensors of their own over the same memory.
bool is_free(const at::Tensor& copy) {
  return copy.use_count() == 1 && copy.storage().use_count() == 1;
}

}  // namespace

at::Tensor CheckpointCopies::copy(const at::Tensor& tensor) {
  const at::NoGradGuard no_gradients;
  const at::Tensor source = tensor.detach();
  std::vector<at::Tensor>& same =
      memory_[{source.scalar_type(), source.sizes().vec(), source.strides().vec()}];
  for (at::Tensor& memory : same) {
    if (is_free(memory)) return memory.copy_(source);
  }
  same.push_back(
      at::empty_like(source, source.options().device(at::kCPU).pinned_memory(source.is_cuda())));
  return same.back().copy_(source);
}

}  // namespace tune
