#include "tune/spec/searcher_setup.h"

namespace tune {

SearcherSetup searcher_setup(const ExperimentSpec& spec, const Objective& objective) {
  const RunOptions& options = spec.options;
  SearcherSetup setup;
  setup.space = options.config;
  setup.num_samples = options.num_samples;
  setup.points_to_evaluate = options.points_to_evaluate;
  setup.objective = objective;
  setup.where = options.where;
  setup.earlier = spec.earlier;
  return setup;
}

}  // namespace tune
