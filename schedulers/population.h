// Population: the ranking that population based training works on, trials by their newest value.
// Pure. A trial's place is found in O(log n) steps; entries of 16 bytes move.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/ids.h"

namespace tune {

class Population {
 public:
  struct Entry {
    double score = 0;  // larger is better; NaN counts as -infinity
    TrialNumber trial;
  };

  // `quantile_fraction` of the population, rounded up, is at each end, but never more than half.
  explicit Population(double quantile_fraction) : fraction_(quantile_fraction) {}

  void put(TrialNumber trial, double score);     // which is not there
  void remove(TrialNumber trial, double score);  // which was put with that score
  void clear() { entries_.clear(); }

  std::size_t size() const { return entries_.size(); }
  bool contains(TrialNumber trial, double score) const;
  // From worse to better; of equal ones the lower number is worse. Both are empty for one trial.
  std::span<const Entry> lowest() const { return {entries_.data(), quantile()}; }
  std::span<const Entry> highest() const {
    return {entries_.data() + entries_.size() - quantile(), quantile()};
  }
  static bool is_among(std::span<const Entry> some, TrialNumber trial);

 private:
  std::size_t quantile() const;
  std::vector<Entry>::const_iterator place(const Entry& entry) const;

  double fraction_;
  std::vector<Entry> entries_;
};

}  // namespace tune
