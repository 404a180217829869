#include "tune/spec/experiment_identity.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/sha256.h"
#include "tune/spec/objectives.h"

namespace tune {

Objective objective_of(const ExperimentSpec& spec) {
  TUNE_CHECK(spec.options.seed.has_value());
  Objective objective = objective_of(spec.options);
  objective.seed = *spec.options.seed;
  return objective;
}

std::string experiment_id_of(const ExperimentSpec& spec) {
  return experiment_id(spec.name, spec.options.seed.value_or(0));
}

std::string store_prefix_of(const ExperimentSpec& spec) {
  if (!spec.store_prefix.empty()) return spec.store_prefix;
  return fmt::format("tune:{}:{}", spec.name, experiment_id_of(spec));
}

std::string allocation_prefix_of(const ExperimentSpec& spec) {
  const std::string prefix = store_prefix_of(spec);
  const std::string unique = prefix.substr(prefix.rfind(':') + 1);
  return fmt::format("tune-{}-", unique.empty() ? experiment_id_of(spec) : unique);
}

std::string experiment_mark_of(const ExperimentSpec& spec) {
  return to_hex(sha256(store_prefix_of(spec))).substr(0, 32);
}

std::string object_address(const std::string& checkpoint_storage, const std::string& store_prefix) {
  if (checkpoint_storage.empty()) return {};
  constexpr std::string_view kCommon = "tune:";
  std::string own = store_prefix.substr(store_prefix.starts_with(kCommon) ? kCommon.size() : 0);
  std::ranges::replace(own, ':', '-');
  return checkpoint_storage + (checkpoint_storage.ends_with('/') ? "" : "/") + own;
}

}  // namespace tune
