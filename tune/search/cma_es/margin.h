// Numbers in cells under CMA-ES with margin: their chance of another cell never gets lost, or they
// would be stuck where the step size is smaller than a cell. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/search/cma_es/distribution.h"
#include "tune/search/cma_es/update.h"

namespace tune::search::cma_es {

// Before the update: numbers of the better half that lie in another cell than the mean move to that
// cell's middle, and others make up for the bias. Remembers which numbers had another cell.
void centre(std::vector<Judged>& sorted, Distribution& distribution, const Variables& variables,
            std::size_t better);
// After the update: moves means and scales so that another cell has its least chance.
void correct_margin(Distribution& distribution, const Variables& variables);

}  // namespace tune::search::cma_es
