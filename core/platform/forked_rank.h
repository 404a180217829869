// A rank that is forked from this process as it stands: Distributor and TorchTrainer run these.
#pragma once

#include <sys/types.h>

#include <functional>

#include "core/rank_environment.h"

namespace tune {

struct ForkedRanks {
  RankPlace place = {};
  bool use_gpu = false;  // else ranks see none
  int rendezvous = -1;   // the listening socket at the place's master_port, for rank 0
  int memory = -1;       // memory_of_ranks() of the ranks; -1: none
};

// Forks local rank `rank`, in a session of its own, with the environment of its place and these
// descriptors as stdout and stderr. `body` runs in it and gives its exit code; it must not throw.
// The kernel kills the rank when the caller ends. With use_gpu the caller gets
// CUDA_VISIBLE_DEVICES, too, where it is not set. Throws Error (kProcess). For
// RankGroupOptions::start.
pid_t fork_rank(const ForkedRanks& ranks, int rank, int output, int errors,
                const std::function<int()>& body);

// Throws Error (kProcess), naming `who` as the caller, when this process cannot be forked: it has
// threads or has touched CUDA.
void check_fit_to_fork(const char* who);

}  // namespace tune
