// EarlierTrial: a trial of an experiment before this one, for searchers that learn from results.
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/value.h"
#include "schedulers/trial_scheduler.h"

namespace tune {

// A value that a trial reported, and when: after how many steps.
struct ValueAt {
  std::uint64_t iteration = 0;
  double value = 0;                  // of several numbers the first
  std::vector<double> numbers = {};  // of several (schedulers/merit.h); else empty
  friend bool operator==(const ValueAt&, const ValueAt&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.iteration, s.value);
    f.added(s.numbers);
  }
};

struct EarlierTrial {
  Config config;                // in the space of this experiment
  std::vector<ValueAt> values;  // in the metric's own direction, by iteration; may be NaN
  TrialEnd end = TrialEnd::kCompleted;
  std::string name = {};  // to show: the experiment's folder and the trial's id; empty: unknown
};

}  // namespace tune
