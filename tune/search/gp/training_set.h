// The data that a Gaussian process is fitted to: a history's trials with a value that counts, at
// most so many, and those that are pending. A copy that holds no more than it needs, so that
// proposals can be made of it in another thread. Pure.
//
// Which value counts. A trial that ended, or that a scheduler keeps back, counts with its newest
// value. One that runs counts with its value at the last rung it passed if a scheduler kept back or
// ended another one about there: then it is known to be better than that one. Otherwise it is
// pending. Counting every newest value looks simpler; without a scheduler that stops, each young
// trial is then a bad one beside those that are further. A trial that failed without a value has
// the worst there is. The best of several numbers are the first in the order of
// schedulers/fronts.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "tune/search/history.h"

namespace tune::search::gp {

struct Observation {
  std::optional<TrialNumber> trial;
  UnitPoint point;
  ValueAt result;  // larger is better, -infinity the worst
  bool completed = false;
};

struct TrainingSet {
  std::vector<Observation> observations;    // in the order of the history
  std::vector<UnitPoint> pending;           // the newest, in that order
  std::vector<std::uint64_t> fingerprints;  // of all trials, sorted
  std::uint32_t results_known = 0;          // of all trials, also those not taken
  std::uint32_t pending_known = 0;
  bool stopped_early = false;  // a scheduler keeps back or ends trials
};

struct TrainingLimits {
  std::size_t observations = 250;  // the best, and besides the newest
  std::size_t best = 60;
  std::size_t pending = 100;
};

TrainingSet training_set(const History& history, const TrainingLimits& limits = {});

}  // namespace tune::search::gp
