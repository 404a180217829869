// The stopping form of asynchronous successive halving (Li et al., arXiv 1810.05934), as users of
// Ray Tune's AsyncHyperBandScheduler know it. Differences: a report is judged once, at the highest
// rung it reached, and fills the lower ones; NaN is the worst value; percentile positions and rungs
// are exact, so ties continue and a top rung at max_t exists; rungs survive a restart.
// A decision costs O(log n) in the number of values of a rung.
#pragma once

#include <optional>
#include <string>

#include "schedulers/scheduler_spec.h"

namespace tune {

enum class AshaRule : std::uint8_t {
  kRay,  // stop when strictly worse than the percentile 1 - 1/factor of the values already there
  kTop,  // go on when among the best max(floor(n / factor), 1), own value included
  kLast = kTop,
};

struct AshaOptions {
  double max_t = 100;           // in units of time_attr; > 0
  double grace_period = 1;      // the first rung of bracket 0; 0 < grace_period <= max_t
  double reduction_factor = 4;  // > 1, may be fractional
  int brackets = 1;             // >= 1
  std::string time_attr = "training_iteration";
  std::string metric = {};        // empty: the experiment's
  std::optional<Mode> mode = {};  // empty: the experiment's
  bool stop_last_trials = true;   // stop at max_t
  AshaRule rule = AshaRule::kRay;
  int min_rung_size = 1;  // values a rung must hold before it stops anyone
};

// Throws Error (kBadInput) naming the parameter and its value when one is out of range.
SchedulerSpec asha(AshaOptions options = {});

}  // namespace tune
