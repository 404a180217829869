// Rung: the values recorded at one milestone, with one order statistic kept up to date. Pure.
//
// Values are kept so that larger is better (callers negate under mode min); NaN is the worst value.
// Adding one and reading the cut-off cost O(log n).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "schedulers/asha.h"
#include "schedulers/ranked_values.h"

namespace tune {

// Where the cut-off lies among n values, for a factor that is exactly m / 2^k. Sources: Ray Tune's
// percentile with linear interpolation (rule ray), promotion of the best 1/factor (rule top).
class CutOffPosition {
 public:
  CutOffPosition(AshaRule rule, double factor);
  // The worst value that, joined by one more, would have at most half of all better than itself.
  static CutOffPosition majority();

  AshaRule rule() const { return rule_; }
  // Between two of n values, the worst first: `below` of them lie below the first, and it is this
  // part of the way to the second. below: floor((n - 1)(1 - 1/factor)) for rule ray, n - max(floor(n
  // / factor), 1) for rule top; floor(n / 2) - 1 for the majority, where more than (n + 1) / 2 are
  // at least as good from two values on. fraction: what floor took away for rule ray, else 0. n >= 1.
  struct Place {
    std::size_t below = 0;
    double fraction = 0;
  };
  Place at(std::size_t n) const;
  std::size_t below(std::size_t n) const { return at(n).below; }
  std::size_t whole_part(std::size_t n) const;  // floor(n / factor)

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
  std::size_t size() const { return values_.size(); }
  // As RankedValues has it.
  RankedValues::Seat seat(double value) const { return values_.seat(value); }
  std::size_t add(double value);  // its rank among all, from 1, the best; equal values share theirs
  std::size_t add(const RankedValues::Seat& seat);
  // Rule ray: the interpolated percentile. Rule top: the worst value among those that go on.
  // Nothing while the rung is empty. NaN when the position falls on one.
  std::optional<double> cut_off() const;
  double cut_off_with(double value) const;  // rule top: when this value is added

  // For saving: the values below the position, the best first, and the others, the worst first.
  struct Parts {
    std::vector<double> low;
    std::vector<double> high;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.low, s.high);
    }
  };
  Parts parts() const;
  // Takes the values of parts(); false, and nothing changes, when they cannot be a rung's. In
  // states of older versions the parts are heaps, a largest and a smallest value first.
  bool restore(const Parts& parts);

 private:
  double milestone_;
  CutOffPosition position_;
  RankedValues values_;
};

// NaN before everything, else by value.
bool is_worse(double a, double b);

}  // namespace tune
