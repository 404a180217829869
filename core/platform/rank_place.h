// The place of ranks that this process starts: their environment beside its own, and the socket at
// which they find each other.
#pragma once

#include <string>

#include "core/platform/process.h"
#include "core/rank_environment.h"

namespace tune {

// The variables of rank_environment() that this process's own environment leaves open. If
// CUDA_VISIBLE_DEVICES lists MIG instances, the rank is given its own alone; any other list goes to
// all ranks.
Environment started_rank_environment(const RankPlace& place, int local_rank);

// Empty memory (a memfd) for ranks of this node to speak through; closed when a program is
// executed. It needs no room in /dev/shm, and is gone with the last process that has it. Not open
// where the system has no such memory, or cannot tell of the end of a process by a descriptor.
FileDescriptor memory_of_ranks();

struct Listener {
  FileDescriptor socket;  // bound and listening
  int port = 0;
};
// The socket at which rank 0 is to listen, at an address of this node; port 0 takes a free one.
// Throws Error (kBadInput) when the port is taken or the address does not belong to this node.
Listener listen_at(const std::string& address, int port);

}  // namespace tune
