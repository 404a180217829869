// The words of a group's ranks to each other, through the store of rank 0: who is here, who is
// alone, and what each has been waiting for. These calls may wait for a rank that does not come,
// and for ever when rank 0 is stopped: see within() of group_patience.h.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace tune {

// A rank's first word: the GPU that it computes on (see nccl_device()), and that it is not alone.
void say_here(c10d::Store& store, int rank, int ranks, const std::string& device);
// Whether all ranks have said it; waits for them a little, at most kSlice.
bool are_all_here(c10d::Store& store);
// Of each rank, in their order; waits for them.
std::vector<std::string> devices_of(c10d::Store& store, int ranks);
// Those that have not said it: "1, 3".
std::string absent_ranks(c10d::Store& store, int ranks);

void say_alone(c10d::Store& store, int rank, bool alone);
bool is_any_alone(c10d::Store& store, int ranks);

// Tells the others what this rank has been waiting for, and gives what they tell meanwhile.
std::string what_others_say(c10d::Store& store, int rank, int ranks,
                            std::chrono::milliseconds patience, const std::string& waited_for);

inline constexpr std::chrono::milliseconds kSlice{100};  // of a wait for what may not come

}  // namespace tune
