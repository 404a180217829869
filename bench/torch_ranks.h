// Two forked ranks that use LibTorch, with what an agent gives to those of a trial: a socket to
// meet at and memory to speak through.
#pragma once

#include <functional>

#include "trainables/torch/process_group.h"

namespace tune::bench {

// Once, before ranks are forked: they keep what they free, and the heap lies in huge pages.
void be_like_a_zygote();

// Runs the function in both, of one thread each, and returns the value of rank 0. Throws Error
// (kProcess) when it has none.
double in_two_ranks(const std::function<double(const Rendezvous&)>& function);

}  // namespace tune::bench
