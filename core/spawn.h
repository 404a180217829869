// What the processes of one node agree on besides core/messages.h: the words of agent and zygote on
// the control socket (SOCK_SEQPACKET, one message a packet, at most kMaxSpawnPacketBytes), and the
// names of files that workers write and the agent reads or renames.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "core/ids.h"
#include "core/messages.h"
#include "core/wire.h"

namespace tune {

inline constexpr std::size_t kMaxSpawnPacketBytes = 64u << 10;

// Agent -> zygote: fork one worker. The packet carries one end of the worker's stream socket pair
// and, for rank 0 of a group, a listening socket for the group's rendezvous (SCM_RIGHTS); the
// worker finds the latter's number in the environment as TUNE_RENDEZVOUS_FD.
struct SpawnRequest {
  std::uint64_t request = 0;
  std::string trainable;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.request, s.trainable);
  }
};

// Zygote -> agent, one for each request. The worker exists when pid is not 0, else `error` says why
// it does not.
struct Spawned {
  std::uint64_t request = 0;
  std::uint32_t pid = 0;
  std::string error;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.request, s.pid, s.error);
  }
};

using ZygoteMessage = std::variant<ZygoteReady, Spawned>;

// The dynamic linker of an executed zygote resolves every function at once, so that no worker has to
// do it again. The zygote removes it: it is not for programs that workers start.
inline constexpr const char* kBindNowVariable = "LD_BIND_NOW";

inline constexpr const char* kRendezvousVariable = "TUNE_RENDEZVOUS_FD";

// Where the ranks of an attempt write a checkpoint before it is whole: beside its final folder.
inline std::string temporary_checkpoint_name(std::uint64_t iteration, AttemptNumber attempt) {
  return "." + checkpoint_name(iteration) + ".tmp-" + std::to_string(attempt.value);
}

// "stderr" of rank 0, "stderr.3" of rank 3.
inline std::string rank_file_name(const char* name, std::uint32_t rank) {
  return rank == 0 ? std::string(name) : std::string(name) + "." + std::to_string(rank);
}

// The line that opens each attempt in the files of its output.
inline std::string attempt_line(AttemptNumber attempt) {
  return "--- attempt " + std::to_string(attempt.value) + " ---\n";
}

}  // namespace tune
