// Asynchronous successive halving (Li et al., arXiv 1810.05934) in two forms.
//
// By stopping, the default, as users of Ray Tune's AsyncHyperBandScheduler know it: a trial that is
// worse than others at a rung is stopped there, any other trains on at once. Differences: a report
// is judged once, at the highest rung it reached, and fills the lower ones; NaN is the worst value;
// percentile positions and rungs are exact, so ties continue and a top rung at max_t exists; rungs
// survive a restart.
//
// By promotion, the paper's own form: each trial that reaches a rung is paused (saved) there. A
// free place goes to the top rung that has a trial to promote, from there the best that waits among
// the first floor(n / factor) of the n values recorded; else to a new trial. When there is none
// either, the place stays free until another trial reaches a rung; when nothing runs, those that
// wait are over. Syne Tune's PromotionRungSystem differs: its cut-off is numpy's quantile, which
// promotes the first floor((n - 1) / factor) + 1, one of two trials under any factor; trials that
// tie with the cut-off are all promoted, here the earlier ones; and it asserts that no report skips
// a rung, here the highest one reached counts. NaN is stopped, since it can never be promoted. With
// several brackets, the one whose rung is higher goes first.
//
// With `open_after`, low rungs open one after another as trials come to the top: all that wait
// there go on, the best first, and those that come later pass it. Late in a long sweep nearly all
// that a searcher proposes is good, and a few steps do not tell such trials apart. Hyper-Tune (Li
// et al., VLDB 2022) draws the first rung of each trial by how well each rung foretells the top
// one; here the number of values at the top decides, and trials that wait at the rung are not lost.
// A rung opens sooner when its values say next to nothing of the next one's (silent_rung.h) and all
// below it are open, unless `open_silent` is false, there are several objectives, or the next one
// is the top.
//
// A decision costs O(log n) in the number of values of a rung; the one that opens it, O(n log n);
// the first 60 at a rung, O(n) in the values of the one below.
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

enum class AshaType : std::uint8_t {
  kStop,
  kPromote,  // pauses trials: they must be able to save
  kLast = kPromote,
};

struct AshaOptions {
  double max_t = 100;           // in units of time_attr; > 0
  double grace_period = 1;      // the first rung of bracket 0; 0 < grace_period <= max_t
  double reduction_factor = 4;  // > 1, may be fractional
  int brackets = 1;             // >= 1
  std::string time_attr = "training_iteration";
  std::string metric = {};         // empty: the experiment's
  std::optional<Mode> mode = {};   // empty: the experiment's
  bool stop_last_trials = true;    // stop at max_t
  AshaRule rule = AshaRule::kRay;  // of kStop
  int min_rung_size = 1;           // values a rung must hold before it stops, or promotes, anyone
  AshaType type = AshaType::kStop;
  // Of kPromote: the lowest rung opens once the top one has so many values, the next with
  // reduction_factor times as many, and so on; the top one never does. 0: none.
  int open_after = 0;
  bool open_silent = true;  // of open_after
};

// Throws Error (kBadInput) naming the parameter and its value when one is out of range.
SchedulerSpec asha(AshaOptions options = {});

}  // namespace tune
