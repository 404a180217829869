// The targets of a constraint's process, in place of the margins by which results keep it. Pure.
//
// The bound, a margin of 0, is what matters, and how far away it is. A margin m becomes
// sign(m) log(1 + |m| / s), as in Eriksson and Poloczek, "Scalable Constrained Bayesian
// Optimization", AISTATS 2021, here with s the median of all |m|, and at most 10 s away: steep near
// the bound, flat where it is broken by far, and the same in any unit. A margin that is not
// finite breaks it by as much as any. Then all are scaled to mean 0 and variance 1.
//
// The simpler way is to rank margins as the values of objectives are ranked (targets.h). While no
// result keeps the constraint the bound is then always one rank above the best, however far away:
// with one configuration of a hundred that keeps it, the search crept along the best and found none
// within 30 trials, or after 23 on average, where these targets take 11. Whether a constraint is
// kept, as 0 and 1, says nothing at all until one keeps it.
#pragma once

#include <vector>

namespace tune::search::gp {

struct MarginTargets {
  std::vector<double> targets;  // empty when all margins are alike: there is nothing to learn
  double bound = 0;             // what is above it keeps the constraint
};

// A margin of 0 keeps the constraint. Where such were seen (of whole numbers, say) the bound is
// half way to the best that breaks it, so that they lie above.
MarginTargets margin_targets(const std::vector<double>& margins);

}  // namespace tune::search::gp
