// The ends of an agent's children.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/platform/process.h"

namespace tune {

// A descriptor for the ends of children and for signals that end the agent.
FileDescriptor watch_signals(bool has_joined);

struct Reaped {
  pid_t pid;
  int status;
};
// Reaps every child that has ended. Processes that a child left behind in its group die with it;
// the number of the group is not free for others until the child is reaped.
std::vector<Reaped> reap(pid_t zygote);

ProcessEnd process_end(int wait_status);

// The last children that ended and were not workers.
class Strays {
 public:
  static constexpr std::size_t kMost = 64;
  void add(pid_t pid, ProcessEnd end);
  std::optional<ProcessEnd> take(pid_t pid);  // once

 private:
  std::deque<std::pair<pid_t, ProcessEnd>> strays_;
};

}  // namespace tune
