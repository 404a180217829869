// MemoryLimits: the limit on the memory that the ranks of an attempt have together. A trial that
// leaks then ends alone, and takes neither the agent nor other trials with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/platform/memory_cgroups.h"

namespace tune {

class MemoryLimits {
 public:
  // 0: no limit is wanted, and nothing is done.
  explicit MemoryLimits(std::int64_t limit_bytes);
  MemoryLimits(std::int64_t limit_bytes, MemoryCgroups cgroups);
  ~MemoryLimits();  // removes what is left, as far as its processes are gone
  MemoryLimits(const MemoryLimits&) = delete;

  // The reason why the wanted limit cannot be set here, for the user; empty: it can, or none is
  // wanted.
  std::string why_not() const;
  // Call it before the rank does anything. Returns the cause of a failure; empty: the limit holds.
  // `nodes`: that the attempt is on, each with an equal part of the limit.
  std::string add(std::uint64_t attempt, pid_t pid, int nodes = 1);
  // "needed more than its memory of 8 GiB", if that is why a rank was ended.
  std::optional<std::string> excess(std::uint64_t attempt) const;
  // Every rank is reaped. Processes that a rank started may still be ending: then removal is tried
  // again later.
  void end(std::uint64_t attempt);

 private:
  bool limits() const { return cgroups_ && cgroups_->why_not().empty(); }
  void remove_ended();

  std::int64_t limit_bytes_;
  std::optional<MemoryCgroups> cgroups_;
  std::map<std::uint64_t, std::int64_t> live_;  // with the limit of each
  std::set<std::uint64_t> ended_;  // not removed yet
};

// "8 GiB", "512 MiB".
std::string memory_text(std::int64_t bytes);

}  // namespace tune
