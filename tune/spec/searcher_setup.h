// The setup of a sweep's searcher: the same wherever one is made.
#pragma once

#include "tune/search/searcher.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

SearcherSetup searcher_setup(const ExperimentSpec& spec, const Objective& objective);

}  // namespace tune
