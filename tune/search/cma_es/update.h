// One generation of CMA-ES with categories and margin: "CatCMAwM" (Hamano et al., "CatCMA with
// Margin: Stochastic Optimization for Continuous, Integer, and Categorical Variables", GECCO 2025),
// as the package cmaes 0.13 has it. Pure.
//
// Ours differs: thresholds between values are the borders of their cells, and a number beyond the
// last one has the last one on both sides, however many values other numbers have; losses that say
// nothing of their range cost no penalty instead of making all numbers NaN.
#pragma once

#include <vector>

#include "tune/search/cma_es/distribution.h"

namespace tune::search::cma_es {

struct Judged {
  Drawn drawn;
  double loss = 0;
};

// `judged` has as many as the population (TUNE_CHECK). False, and nothing is changed, when numbers
// failed: what came out is not finite.
bool update(Distribution& distribution, const Variables& variables, std::vector<Judged> judged);

// A sample of an older distribution, drawn nearer to the mean if it is further from it than
// numbers drawn now are (Hansen, "Injecting External Solutions Into CMA-ES", 2011).
void pull_in(Drawn& drawn, const Distribution& distribution);

}  // namespace tune::search::cma_es
