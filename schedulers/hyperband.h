// HyperBand (Li et al., JMLR 18, 2018) with synchronous brackets. The asynchronous form is
// tune::asha with several brackets.
//
// A bracket of s halvings begins with ceil((S + 1) / (s + 1) * factor^s) trials; S is the largest
// s. They run to the first of its rungs, grace_period * factor^(S - s), and pause there (they
// save). When all have come that are not over, the best ceil((S + 1) / (s + 1) * factor^(s - 1)) go
// on to the next rung, and so on; the last go on to max_t. Brackets follow each other from s = S
// down to 0, and again from S: a new trial joins the first that is not full, so that none waits for
// another bracket. A free place goes to the oldest bracket with a trial to go on, there to the
// best; else to a new trial. When there is none either, and nothing else can happen, a bracket that
// is not full closes and halves what it has.
//
// Sizes, rungs and order are those of Syne Tune's SynchronousHyperbandBracketManager, which starts
// failed trials again when too few others are left; here fewer go on. Ray Tune's HyperBandScheduler
// begins with the bracket that halves nothing, halves what is there whenever all of it has come,
// full or not, and hangs when a paused trial is lost; its rungs are rounded down from max_t. Of
// equal values the trial that came first goes on; NaN is stopped. Those that do not go on stay
// paused until the experiment ends. A decision costs O(log n) a trial of a bracket; brackets that
// are over are forgotten.
#pragma once

#include <optional>
#include <string>

#include "schedulers/scheduler_spec.h"

namespace tune {

struct HyperBandOptions {
  double max_t = 81;            // in units of time_attr; > 0
  double grace_period = 1;      // the lowest rung of all; 0 < grace_period <= max_t
  double reduction_factor = 3;  // >= 2
  std::string time_attr = "training_iteration";
  std::string metric = {};        // empty: the experiment's
  std::optional<Mode> mode = {};  // empty: the experiment's
  bool stop_last_trials = true;   // stop at max_t
};

// Throws Error (kBadInput) naming the parameter and its value when one is out of range.
SchedulerSpec hyperband(HyperBandOptions options = {});

}  // namespace tune
