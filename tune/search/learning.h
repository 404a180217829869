// Which of the searchers that sweeps name learn from results. Pure.
#pragma once

#include <string>

namespace tune {

// False where results play no part in what it suggests. A program's own, without a name, may learn.
bool learns_from_results(const std::string& searcher);

}  // namespace tune
