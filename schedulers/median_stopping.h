// Median stopping (Golovin et al., Google Vizier, KDD 2017): a trial that does worse than half of
// the others did at the same step is stopped.
//
// A trial's value at a step is the mean of what it reported from grace_period up to there. By the
// rule `mean`, Syne Tune's, a trial is stopped when more than half of all trials at that step,
// itself included, have a better mean. By the rule `best`, Vizier's own and Ray Tune's
// MedianStoppingRule, it is stopped when the best value that it ever reported is strictly worse
// than the median of the others' means (of an even number, halfway between the middle two).
//
// Differences, on purpose. Both tools search every trial's results at every report; here a step
// keeps its middle value up to date, O(log n) a report. Steps are grace_period and then one more
// each, but from the hundredth on a hundredth more each, so that a trial of a million steps is
// judged, and kept, at 1,030 of them; a report that skips steps counts at each of them, and is
// judged at the highest. NaN is the worst value and is stopped as soon as enough others are there;
// Ray Tune leaves values that are not finite out. Syne Tune's mean begins before its grace time.
// Trials are not paused to wait for others, as Ray Tune's hard_stop=False and min_time_slice do.
#pragma once

#include <optional>
#include <string>

#include "schedulers/scheduler_spec.h"

namespace tune {

enum class MedianRule : std::uint8_t { kMean, kBest, kLast = kBest };

struct MedianStoppingOptions {
  double grace_period = 1;       // the first step that is judged, in units of time_attr; > 0
  int min_samples_required = 4;  // other trials with a value at that step; >= 1
  MedianRule rule = MedianRule::kMean;
  std::string time_attr = "training_iteration";
  std::string metric = {};        // empty: the experiment's
  std::optional<Mode> mode = {};  // empty: the experiment's
};

// Throws Error (kBadInput) naming the parameter and its value when one is out of range.
SchedulerSpec median_stopping(MedianStoppingOptions options = {});

}  // namespace tune
