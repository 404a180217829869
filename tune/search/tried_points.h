// Which points were tried, or are about to be. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tune/search/encoding.h"

namespace tune {

class TriedPoints {
 public:
  // `fingerprints` are sorted, and must outlive it.
  explicit TriedPoints(const std::vector<std::uint64_t>& fingerprints) : before_(fingerprints) {}

  void add(const UnitPoint& point) { added_.push_back(fingerprint(point)); }
  bool contains(const UnitPoint& point) const {
    const std::uint64_t print = fingerprint(point);
    return std::binary_search(before_.begin(), before_.end(), print) ||
           std::find(added_.begin(), added_.end(), print) != added_.end();
  }

 private:
  const std::vector<std::uint64_t>& before_;
  std::vector<std::uint64_t> added_;
};

// A point drawn as the space draws that was not tried before, as far as some hundred draws find
// one; else one that was, or one that does not hold, and `note` says so.
struct DrawnPoint {
  UnitPoint point;
  std::string note = {};
};
DrawnPoint draw_untried(const Encoding& encoding, const TriedPoints& tried, RandomStream& random);

}  // namespace tune
