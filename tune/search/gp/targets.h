// The process predicts these instead of the metric. Metrics have every shape, with a few very bad
// values far from all others; the model assumes a normal one. So values become ranks, and ranks
// normal scores: the mean number of standard deviations at which so good a value lies, scaled to
// variance 1. Equal values share their ranks. (Standardised values were a fifth worse in regret.)
//
// Ranked within rungs: trials that a scheduler stopped have values after few steps, others after
// many, and these do not compare: a value's rank is the one among those of about as many steps (a
// factor of up to the square root of kRungFactor apart), and each rung further is worth as much as
// the way from the worst to the best within one. The rank of that sum becomes the score. A trial
// that completed early because it is as good as the best of all that got further counts as one of
// them. Pure.
#pragma once

#include <vector>

#include "tune/search/gp/training_set.h"

namespace tune::search::gp {

// One for each observation, mean 0 (but for rounding) and variance 1; empty when all are alike, so
// that there is nothing to learn.
std::vector<double> targets_of(const std::vector<Observation>& observations);

}  // namespace tune::search::gp
