// MeritStanding: how a trial stands by its last result where one number does not say it: under
// several objectives, or under constraints. For `tune explain`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/value.h"
#include "schedulers/trial_scheduler.h"
#include "tune/results/analysis.h"

namespace tune {

struct MeritStanding {
  struct Measured {
    Goal goal;
    std::optional<double> value;  // nothing: missing
  };
  struct Bounded {
    Constraint constraint;
    std::optional<double> value;  // as above
    bool is_kept = false;
  };
  std::vector<Measured> goals;
  std::vector<Bounded> bounds;
  bool compares = false;  // all of these have a finite value
  std::size_t front = 0;  // trials on the front (Analysis::pareto)
  std::string better;  // one of them that dominates it; empty: it is on the front, or not compared
  std::string better_why;  // "is better by one objective and worse by none"
};

// Nothing where a metric and its mode say all.
std::optional<MeritStanding> merit_standing(const Analysis& analysis, const TrialSummary& trial);
Value to_value(const MeritStanding& standing);
// Fit to show: "accuracy 0.93 (max), latency_ms 25 (min)", "breaks latency_ms <= 20: it is 25", ...
std::vector<std::string> lines_of(const MeritStanding& standing);

}  // namespace tune
