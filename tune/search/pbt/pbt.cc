#include "tune/search/pbt/pbt.h"

#include <cmath>
#include <exception>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "schedulers/option_check.h"
#include "schedulers/pbt_scheduler.h"
#include "schedulers/scheduler_parameters.h"
#include "tune/search/pbt/mutation.h"

namespace tune {

namespace {

constexpr const char* kName = "pbt";
const std::vector<std::string> kKeys = {"perturbation_interval",
                                        "hyperparam_mutations",
                                        "quantile_fraction",
                                        "resample_probability",
                                        "perturbation_factors",
                                        "burn_in_period",
                                        "require_attrs",
                                        "synch",
                                        "time_attr",
                                        "metric",
                                        "mode"};

[[noreturn]] void refuse_mutation(const SpaceComplaint& complaint) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("scheduler pbt: hyperparam_mutations{}{}: {}",
                          complaint.path.empty() ? "" : "/", complaint.path, complaint.message));
}

void check_options(const PbtOptions& options) {
  check_rules(kName, rules_of(options));
  const OptionCheck check(kName);
  check.require(options.resample_probability >= 0 && options.resample_probability <= 1,
                "resample_probability", options.resample_probability, "from 0 to 1");
  for (const double factor : options.perturbation_factors) {
    check.require(factor > 0 && std::isfinite(factor), "perturbation_factors", factor, "above 0");
  }
  if (options.perturbation_factors.empty()) {
    throw Error(ErrorCode::kBadInput,
                "scheduler pbt: perturbation_factors is empty: give one or more, as in [1.2, 0.8]");
  }
  if (options.custom_explore && mutated_paths(options.hyperparam_mutations).empty()) return;
  const auto complaints = complaints_about_mutations(options.hyperparam_mutations);
  if (!complaints.empty()) refuse_mutation(complaints.front());
}

bool has_functions(const PbtOptions& options) {
  if (options.custom_explore) return true;
  for (const auto& [path, domain] : options.hyperparam_mutations.domains()) {
    if (domain->is_function()) return true;
  }
  return false;
}

// A function of the user's that throws leaves the donor's values as they are, as do mutations of
// which none keeps the rules.
Explored explore(const PbtOptions& options, const Exploration& asked) try {
  const MutationRules rules{options.resample_probability, options.perturbation_factors};
  for (int attempt = 0; attempt < Exploration::kMostTries; ++attempt) {
    StreamChance chance(asked.luck("pbt mutation", attempt));
    Mutated mutated = mutate(asked.config, options.hyperparam_mutations, rules, chance);
    if (options.custom_explore) mutated.config = options.custom_explore(mutated.config);
    if (!asked.may_be(mutated.config)) continue;
    return {std::move(mutated.config), std::move(mutated.changes)};
  }
  return {asked.config, fmt::format("values stay, since none of {} mutations kept to `where`",
                                    Exploration::kMostTries)};
} catch (const std::exception& error) {
  return {asked.config, fmt::format("values stay, since mutating them failed: {}", error.what())};
}

}  // namespace

SchedulerSpec pbt(PbtOptions options) {
  check_options(options);
  Config parameters = parameters_of(rules_of(options));
  parameters.set("hyperparam_mutations", options.hyperparam_mutations.describe());
  parameters.set("resample_probability", options.resample_probability);
  parameters.set("perturbation_factors", options.perturbation_factors);
  const bool is_own = has_functions(options);
  std::vector<std::string> paths = mutated_paths(options.hyperparam_mutations);
  SchedulerSpec spec(is_own ? "" : kName, is_own ? Config() : std::move(parameters), [options] {
    return std::make_unique<PbtScheduler>(
        kName, rules_of(options),
        [options](const Exploration& asked) { return explore(options, asked); });
  });
  spec.set_changed_parameters(std::move(paths));
  return spec;
}

SchedulerSpec pbt_from_config(const Config& written) {
  const SchedulerParameters parameters(kName, written, kKeys);
  PbtOptions options;
  read_rules(parameters, options);
  parameters.read("resample_probability", options.resample_probability);
  parameters.read("perturbation_factors", options.perturbation_factors);
  if (const Value* mutations = written.find("hyperparam_mutations")) {
    std::vector<SpaceComplaint> complaints;
    options.hyperparam_mutations = search_space_from_value(*mutations, complaints);
    if (!complaints.empty()) refuse_mutation(complaints.front());
  }
  return pbt(options);
}

}  // namespace tune
