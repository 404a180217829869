// Preparations by libraries, made at the beginning of every rank before any of the user's code runs
// there, and in the zygote before it forks ranks.
#pragma once

#include <functional>
#include <string>

namespace tune {

// Registers `prepare`. It is called in each process that becomes a rank (a trial's worker, a rank
// of a Distributor or a TorchTrainer), once its environment is set. An exception ends the rank with
// that error. For static initialisation. Returns true.
bool at_rank_start(std::function<void()> prepare);

// For code that starts ranks: calls the preparations in the order of their registration, up to one
// that throws. The caller says the error where it is heard: a forked rank on its stderr.
void begin_rank();

// Registers `prepare` for the zygote of a sweep whose trials use GPUs, on a node that has some:
// what takes long and is the same for all trials, such as opening libraries. It makes no thread and
// does not call CUDA, which no fork may have seen. It returns a notice for the user, or nothing,
// and throws nothing that ends the zygote. For static initialisation. Returns true.
bool at_gpu_zygote_start(std::function<std::string()> prepare);

// For the zygote: calls them all, and returns their notices as one text; that of an exception also.
std::string prepare_gpu_zygote();

// "1" in the environment of such a zygote, which takes it away: its trials may run sweeps.
inline constexpr const char* kGpuTrialsVariable = "TUNE_GPU_TRIALS";

}  // namespace tune
