// What libraries have done at the beginning of every rank, before any of the user's code runs
// there.
#pragma once

#include <functional>

namespace tune {

// Has `prepare`, which must not throw, called in each process that becomes a rank from here (a
// trial's worker, a rank of a Distributor or a TorchTrainer), when its environment is set. For
// static initialisation. Returns true.
bool at_rank_start(std::function<void()> prepare);

// For those who start ranks: calls them in the order in which they were given.
void begin_rank();

}  // namespace tune
