// A group's way to find out whether its ranks can speak through shared memory, and to begin to.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <exception>
#include <memory>

#include "trainables/torch/process_group.h"
#include "trainables/torch/shared_memory_backend.h"

namespace tune {

// Takes the place's memory and says in it what this rank wants. Null: it has none, or it cannot be
// used.
std::unique_ptr<shared_memory::RankMemory> join_memory(const Rendezvous& place,
                                                       const GroupOptions& options);
// Once all ranks have come somewhere: whether all are here and want it. All ranks come to the same
// answer. Beside NCCL it serves the tensors of the CPU.
bool can_share(const shared_memory::RankMemory& memory, bool speaks_nccl);

c10::intrusive_ptr<SharedMemoryBackend> speak_through(
    std::unique_ptr<shared_memory::RankMemory> memory, const shared_memory::Patience& patience);
c10::intrusive_ptr<c10d::ProcessGroup> make_shared_memory_group(
    const c10::intrusive_ptr<c10d::Store>& store, const Rendezvous& place,
    const c10::intrusive_ptr<SharedMemoryBackend>& shared);

// For another group of the ranks that speak through this; all ranks call it.
std::unique_ptr<shared_memory::RankMemory> next_memory(SharedMemoryBackend& shared);

bool is_of_different_calls(const std::exception& error);

}  // namespace tune
