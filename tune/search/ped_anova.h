// The share that each parameter has in whether a trial is among the best: PED-ANOVA (Watanabe,
// Bansal and Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in Arbitrary
// Subspaces", IJCAI 2023). For each parameter the density of the best trials is compared with that
// of all trials, by the Pearson divergence; where both are alike the parameter does not matter. So
// it asks what makes a trial good, not what makes bad ones so bad; it needs no model of the metric,
// only ranks, and it does not matter that a searcher tried some regions more often than others.
//
// Ours differs:
// - Both densities have one bandwidth, that of the best trials by Scott's rule, on the scale on
//   which the parameter is drawn. As the best are among all, their quotient is bounded by
//   construction; the paper needs a prior kernel, which makes everything look alike when there are
//   few trials.
// - What chance alone gives is taken off: the mean divergence of so many trials drawn at random.
//   With 20 trials that is an eighth of what a parameter gets that decides all, so that ten without
//   any effect would have more than half of the importance. A parameter stands out when its
//   divergence is above that of 99 of 100 such draws.
// - A parameter that depends on a choice is compared among the trials that have it, and counts by
//   the share of the best that do. What the choice itself decides is the choice's.
//
// It sees each parameter by itself: one that matters only together with another, and is even by
// itself, is missed. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tune/search/encoding.h"

namespace tune {

struct ParameterImportance {
  double divergence = 0;    // of the best from all
  double chance = 0;        // its mean for as many trials drawn at random
  double share = 0;         // of the importance of all parameters; these add up to 1, or all are 0
  bool stands_out = false;  // chance alone hardly ever gives as much
  std::size_t trials = 0;   // that have it
};

// The number of best ones of so many trials: a tenth, or of few trials 8, at most a quarter.
std::size_t best_of(std::size_t trials);

// One for each parameter of the encoding. `scores`, larger is better, are of `points`, at least 4;
// of equal scores the earlier one is better.
std::vector<ParameterImportance> ped_anova(const Encoding& encoding,
                                           const std::vector<UnitPoint>& points,
                                           const std::vector<double>& scores);

}  // namespace tune
