// Chances of categories, moved by the natural gradient with a step size that adapts (Akimoto et
// al., "Adaptive Stochastic Natural Gradient Method for One-Shot Neural Architecture Search", ICML
// 2019), and with a least chance for each option. Pure.
#pragma once

#include <vector>

#include "tune/search/cma_es/distribution.h"
#include "tune/search/cma_es/rates.h"
#include "tune/search/cma_es/update.h"

namespace tune::search::cma_es {

void update_chances(Distribution& distribution, const std::vector<Judged>& sorted,
                    const Rates& rates, double margin);

}  // namespace tune::search::cma_es
