// Names that the processes of one node agree on besides core/worker_contract.h: variables of the
// environment, and files that workers write and the agent reads or renames.
#pragma once

#include <cstdint>
#include <string>

#include "core/ids.h"

namespace tune {

// The dynamic linker of an executed zygote resolves every function at once, so that no worker has
// to do it again. The zygote removes it: it is not for programs that workers start.
inline constexpr const char* kBindNowVariable = "LD_BIND_NOW";

// Descriptors that a rank of a group inherits: of rank 0 the socket at which it listens, of each
// rank the memory of the ranks of its host.
inline constexpr const char* kRendezvousVariable = "TUNE_RENDEZVOUS_FD";
inline constexpr const char* kSharedMemoryVariable = "TUNE_SHARED_MEMORY_FD";

// "stderr" of rank 0, "stderr.3" of rank 3.
inline std::string rank_file_name(const char* name, std::uint32_t rank) {
  return rank == 0 ? std::string(name) : std::string(name) + "." + std::to_string(rank);
}

// In a trial's folder: what its attempts use, by the agent (core/agent/usage_log.h).
inline constexpr const char* kUsageFile = "usage.jsonl";

// The line that opens each attempt in the files of its output.
inline std::string attempt_line(AttemptNumber attempt) {
  return "--- attempt " + std::to_string(attempt.value) + " ---\n";
}

}  // namespace tune
