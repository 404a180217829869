// LinkAgenda: which of many links have something to do, so that the cost of a turn grows with the
// links it touches and not with all links. Pure.
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
  // All links are looked at this often, for refused or missed messages and for heartbeats.
  static constexpr Link::Time kLookEvery = std::chrono::milliseconds(200);

  // A frame came on this link, one may be acknowledged on it, or a message is to be sent.
  void touch(std::size_t link) { due_.insert(link); }

  // The links among 0 .. count - 1 that are to be flushed now.
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
