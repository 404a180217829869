// Which points were tried, or are about to be. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tune/search/encoding.h"

namespace tune {

class TriedPoints {
 public:
  // `fingerprints` must outlive it. Sorted, they are the better for many questions; for few,
  // sorting them costs more than it saves.
  explicit TriedPoints(const std::vector<std::uint64_t>& fingerprints)
      : before_(fingerprints), sorted_(std::is_sorted(before_.begin(), before_.end())) {}

  void add(const UnitPoint& point) { added_.push_back(fingerprint(point)); }
  bool contains(const UnitPoint& point) const {
    const std::uint64_t print = fingerprint(point);
    return was_before(print) || std::find(added_.begin(), added_.end(), print) != added_.end();
  }

 private:
  bool was_before(std::uint64_t print) const {
    if (sorted_) return std::binary_search(before_.begin(), before_.end(), print);
    return std::find(before_.begin(), before_.end(), print) != before_.end();
  }

  const std::vector<std::uint64_t>& before_;
  bool sorted_;
  std::vector<std::uint64_t> added_;
};

// A point drawn as the space draws that was not tried before, as far as some hundred draws find
// one; else one that was, and `note` says so. Throws Error (kBadInput) where no draw holds.
struct DrawnPoint {
  UnitPoint point;
  std::string note = {};
};
DrawnPoint draw_untried(const Encoding& encoding, const TriedPoints& tried, RandomStream& random);

}  // namespace tune
