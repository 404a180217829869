// Whether values at a rung tell which trials do well at the next one. Some metrics do not at first:
// a loss that is reported before the first step of training is the same luck for all.
//
// Of the trials that have values at both, Kendall's tau compares their orders ("A New Measure of
// Rank Correlation", Biometrika 30, 1938). The rung is silent when tau, with one and a half of the
// standard deviations added that it has where the orders are independent, stays below kFewestAgree.
// Only trials that were promoted are seen, which are alike at the rung, so that tau is smaller than
// among all: on learning curves where the first values do tell something it was .4 to .9, on those
// where they do not, about .1. Hyper-Tune (Li et al., VLDB 2022) weighs rungs by pairs that are in
// the same order as well, as a model's predictions have them.
//
// Judged while the next rung has 8 to 60 values: fewer are luck, and by then a rung that tells
// something has shown it. O(n) in the values of the rung. Pure.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "schedulers/promotion_rung.h"

namespace tune {

inline constexpr double kFewestAgree = 0.55;
inline constexpr double kDeviations = 1.5;
inline constexpr std::size_t kFewestPairs = 8;
inline constexpr std::size_t kMostPairs = 60;

// Of pairs of values, from -1 to 1; equal ones are in no order. There are at least two.
double kendalls_tau(const std::vector<std::pair<double, double>>& pairs);

bool is_silent(const PromotionRung& rung, const PromotionRung& next);

}  // namespace tune
