// Rung: the values recorded at one milestone, with one order statistic kept up to date. Pure.
//
// Two heaps meet at the wanted position, so adding a value costs O(log n) and reading the cut-off
// O(1). Values are kept so that larger is better (callers negate under mode min); NaN is the worst
// value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedulers/asha.h"

namespace tune {

// Where the cut-off lies among n values, for a factor that is exactly m / 2^k. Sources: Ray Tune's
// percentile with linear interpolation (rule ray), promotion of the best 1/factor (rule top).
class CutOffPosition {
 public:
  CutOffPosition(AshaRule rule, double factor);
  // The worst value that, joined by one more, would have at most half of all better than itself.
  static CutOffPosition majority();

  AshaRule rule() const { return rule_; }
  // The number of n values that lie below the position: floor((n - 1)(1 - 1/factor)) for rule ray,
  // n - max(floor(n / factor), 1) for rule top; floor(n / 2) - 1 for the majority, where more than
  // (n + 1) / 2 are at least as good from two values on. n >= 1.
  std::size_t below(std::size_t n) const;
  std::size_t whole_part(std::size_t n) const;  // floor(n / factor)
  // The fractional part of (n - 1)(1 - 1/factor); 0 for rule top and the majority.
  double fraction(std::size_t n) const;

 private:
  AshaRule rule_;
  bool is_majority_ = false;
  unsigned __int128 factor_ = 0;  // factor * scale_
  unsigned __int128 scale_ = 1;   // a power of two
};

class Rung {
 public:
  Rung(double milestone, CutOffPosition position) : milestone_(milestone), position_(position) {}

  double milestone() const { return milestone_; }
  std::size_t size() const { return low_.size() + high_.size(); }
  void add(double value);
  // Rule ray: the interpolated percentile. Rule top: the worst value among those that go on.
  // Nothing while the rung is empty. NaN when the position falls on one.
  std::optional<double> cut_off() const;

  const std::vector<double>& low() const { return low_; }  // heaps, for saving
  const std::vector<double>& high() const { return high_; }
  // Takes the values of low() and high(); false, and nothing changes, when they cannot be a rung's.
  bool restore(std::vector<double> low, std::vector<double> high);

 private:
  void balance();

  double milestone_;
  CutOffPosition position_;
  std::vector<double> low_;   // max-heap: the `below(n)` worst values
  std::vector<double> high_;  // min-heap: the others; its top is the value at the position
};

// NaN before everything, else by value: the order of the heaps.
bool is_worse(double a, double b);

}  // namespace tune
