#include "trainables/torch/random.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace tune {

void seed_all(std::uint64_t seed) {
  at::manual_seed(seed);
}

void set_threads(int threads) {
  at::set_num_threads(std::max(threads, 1));
}

}  // namespace tune
