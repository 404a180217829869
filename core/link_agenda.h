// LinkAgenda: which of many links have something to do, so that a turn costs what it touches and
// not what there is. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/link.h"

namespace tune {

class LinkAgenda {
 public:
  // All are looked at this often, for what was refused or missed and for heartbeats.
  static constexpr Link::Time kLookEvery = std::chrono::milliseconds(200);

  // Something came by it, may be acknowledged on it, or is to be sent.
  void touch(std::size_t link) { due_.insert(link); }

  // Those of the links 0 .. count - 1 to be flushed now.
  std::vector<std::size_t> take_due(Link::Time now, std::size_t count) {
    const std::set<std::size_t> due = std::exchange(due_, {});
    if (now - last_look_ < kLookEvery) return {due.begin(), due.end()};
    last_look_ = now;
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

 private:
  std::set<std::size_t> due_;
  Link::Time last_look_{};
};

}  // namespace tune
