// GroupMeter: the processor time and the memory of process groups, from /proc. A worker leads a
// group of its own, so its children count with it, unless they have left the group.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>

#include "core/clock.h"

namespace tune {

struct GroupUsage {
  Duration cpu{};                 // of all its processes since the last reading; at first, ever
  std::int64_t memory_bytes = 0;  // resident; pages that processes share count in each of them
};

class GroupMeter {
 public:
  explicit GroupMeter(std::filesystem::path proc = "/proc") : proc_(std::move(proc)) {}

  // Reads every process of the machine once, about 20 microseconds each. A group without a process
  // is not in the answer. What a process used counts while it lives and, when a process of its
  // group has waited for it, after its end: else that is lost.
  std::map<pid_t, GroupUsage> read(const std::set<pid_t>& groups);

 private:
  std::filesystem::path proc_;
  std::map<pid_t, Duration> totals_;  // at the last reading, of the groups that were asked for
};

}  // namespace tune
