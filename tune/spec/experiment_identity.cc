#include "tune/spec/experiment_identity.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

Objective objective_of(const ExperimentSpec& spec) {
  TUNE_CHECK(spec.options.seed.has_value());
  return {spec.options.metric, spec.options.mode.value_or(Mode::kMax), *spec.options.seed};
}

std::string experiment_id_of(const ExperimentSpec& spec) {
  return experiment_id(spec.name, spec.options.seed.value_or(0));
}

std::string store_prefix_of(const ExperimentSpec& spec) {
  if (!spec.store_prefix.empty()) return spec.store_prefix;
  return fmt::format("tune:{}:{}", spec.name, experiment_id_of(spec));
}

}  // namespace tune
