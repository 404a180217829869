// Where CMA-ES begins when results of earlier experiments are known: around the best of them.
// Nomura, Watanabe, Akimoto, Ozaki and Onishi, "Warm Starting CMA-ES for Hyperparameter
// Optimization" (AAAI 2021): the normal distribution that is nearest to a mixture of small ones,
// one around each of the best tenth. Ours differs: the best are at least 3, the standard deviation
// of the small ones, a tenth of the range, is at most the one it would begin with otherwise, and
// categories are as likely as among the best, each having been there once more. Pure.
#pragma once

#include <vector>

#include "tune/search/cma_es/distribution.h"
#include "tune/search/cma_es/variables.h"

namespace tune::search::cma_es {

inline constexpr std::size_t kFewestToBegin = 3;  // of the best

// The number of best ones of so many earlier results; 0: too few to begin with.
std::size_t best_of_earlier(std::size_t results);
// `first`, moved to where these are; at least kFewestToBegin.
Distribution begun_around(const std::vector<Drawn>& best, Distribution first);

}  // namespace tune::search::cma_es
