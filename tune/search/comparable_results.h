// Of a history the results that compare with each other: for searchers that rank trials without a
// model of how values grow with steps. Pure.
//
// While no scheduler keeps back or ends trials, these are the values at which trials ended. Once
// one does, values of different numbers of steps do not compare. Then they are the values at the
// highest rung of the history at which there are 10 (Falkner, Klein and Hutter, "BOHB: Robust and
// Efficient Hyperparameter Optimization at Scale", ICML 2018, which takes the highest budget with
// enough of them), and trials without a value there are left out.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/search/history.h"

namespace tune {

inline constexpr std::size_t kFewestOnRung = 10;

struct ComparableResult {
  std::size_t trial = 0;  // of the history
  bool completed = false;
  // The history's own; the worst there is, of no steps, for one that failed without, while no rung
  // counts.
  const ValueAt* value = nullptr;
};

struct ComparableResults {
  std::vector<ComparableResult> results;  // in the order of the history
  bool stopped_early = false;             // a scheduler keeps back or ends trials
};
// `history` must outlive it.
ComparableResults comparable_results(const History& history);

}  // namespace tune
