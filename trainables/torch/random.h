// The seed and the number of threads that make a training with LibTorch the same every time.
#pragma once

#include <cstdint>

namespace tune {

// Seeds the default generators of the CPU and of the GPUs, also when CUDA is loaded only later.
// Usually with context().seed(), before the model is made. Unlike torch::manual_seed it may be
// called in a process that forks ranks with GPUs.
void seed_all(std::uint64_t seed);

// Threads that one operation may use, usually context().cpus(). LibTorch reads OMP_NUM_THREADS when
// it is loaded, which is before a worker is forked: the worker has to say it. At least 1.
void set_threads(int threads);

}  // namespace tune
