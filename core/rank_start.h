// Preparations by libraries, made at the beginning of every rank before any of the user's code runs
// there.
#pragma once

#include <functional>

namespace tune {

// Registers `prepare`. It is called in each process that becomes a rank (a trial's worker, a rank
// of a Distributor or a TorchTrainer), once its environment is set. An exception ends the rank with
// that error. For static initialisation. Returns true.
bool at_rank_start(std::function<void()> prepare);

// For code that starts ranks: calls the preparations in the order of their registration, up to one
// that throws. The caller says the error where it is heard: a forked rank on its stderr.
void begin_rank();

}  // namespace tune
