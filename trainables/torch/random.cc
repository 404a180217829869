#include "trainables/torch/random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>

#include "trainables/torch/cuda_part.h"

namespace tune {

void seed_all(std::uint64_t seed) {
  {
    // Not at::manual_seed, which asks for CUDA: LibTorch would never see one that is loaded later.
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(seed);
  }
  seed_cuda(seed);
}

void set_threads(int threads) {
  at::set_num_threads(std::max(threads, 1));
}

}  // namespace tune
