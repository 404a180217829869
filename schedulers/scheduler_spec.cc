#include "schedulers/scheduler_spec.h"

#include <fmt/format.h>

#include "core/error.h"
#include "schedulers/asha.h"
#include "schedulers/fifo.h"
#include "schedulers/hyperband.h"
#include "schedulers/median_stopping.h"
#include "schedulers/pbt_replay.h"
#include "schedulers/scheduler_parameters.h"

namespace tune {

namespace {

using Keys = std::vector<std::string>;
using Parameters = SchedulerParameters;

// pbt and pb2 are made in tune/search, which knows domains.
const Keys kSchedulers = {
    "fifo", "asha",       "AsyncHyperBand",         "hyperband", "median_stopping", "pbt",
    "pb2",  "pbt_replay", "PopulationBasedTraining"};
const Keys kAshaKeys = {"max_t",  "grace_period", "reduction_factor", "brackets", "time_attr",
                        "metric", "mode",         "stop_last_trials", "rule",     "min_rung_size",
                        "type",   "open_after",   "open_silent"};
const Keys kHyperBandKeys = {"max_t",  "grace_period", "reduction_factor", "time_attr",
                             "metric", "mode",         "stop_last_trials"};
const Keys kReplayKeys = {"schedule"};
const Keys kMedianKeys = {"grace_period", "min_samples_required", "rule", "time_attr", "metric",
                          "mode"};

SchedulerSpec asha_from(const Config& written) {
  const Parameters parameters("asha", written, kAshaKeys);
  AshaOptions options;
  parameters.read("max_t", options.max_t);
  parameters.read("grace_period", options.grace_period);
  parameters.read("reduction_factor", options.reduction_factor);
  parameters.read("brackets", options.brackets);
  parameters.read("time_attr", options.time_attr);
  parameters.read("stop_last_trials", options.stop_last_trials);
  parameters.read("min_rung_size", options.min_rung_size);
  parameters.read("open_after", options.open_after);
  parameters.read("open_silent", options.open_silent);
  parameters.read_objective(options.metric, options.mode);
  parameters.read("rule", options.rule, {"ray", AshaRule::kRay}, {"top", AshaRule::kTop});
  parameters.read("type", options.type, {"stop", AshaType::kStop}, {"promote", AshaType::kPromote});
  if (parameters.contains("rule") && options.type == AshaType::kPromote) {
    throw Error(ErrorCode::kBadInput,
                "scheduler asha: rule is of type stop: promotion takes the best floor(n / "
                "reduction_factor); leave it out");
  }
  if (parameters.contains("open_after") && options.type == AshaType::kStop) {
    throw Error(
        ErrorCode::kBadInput,
        "scheduler asha: open_after is of type promote: write type: promote, or leave it out");
  }
  if (parameters.contains("open_silent") && options.open_after == 0) {
    throw Error(ErrorCode::kBadInput,
                "scheduler asha: open_silent is of open_after: give both, or leave it out");
  }
  return asha(options);
}

SchedulerSpec hyperband_from(const Config& written) {
  const Parameters parameters("hyperband", written, kHyperBandKeys);
  HyperBandOptions options;
  parameters.read("max_t", options.max_t);
  parameters.read("grace_period", options.grace_period);
  parameters.read("reduction_factor", options.reduction_factor);
  parameters.read("time_attr", options.time_attr);
  parameters.read("stop_last_trials", options.stop_last_trials);
  parameters.read_objective(options.metric, options.mode);
  return hyperband(options);
}

SchedulerSpec median_stopping_from(const Config& written) {
  const Parameters parameters("median_stopping", written, kMedianKeys);
  MedianStoppingOptions options;
  parameters.read("grace_period", options.grace_period);
  parameters.read("min_samples_required", options.min_samples_required);
  parameters.read("rule", options.rule, {"mean", MedianRule::kMean}, {"best", MedianRule::kBest});
  parameters.read("time_attr", options.time_attr);
  parameters.read_objective(options.metric, options.mode);
  return median_stopping(options);
}

}  // namespace

SchedulerSpec::SchedulerSpec() : SchedulerSpec(fifo()) {}

SchedulerSpec fifo() {
  return SchedulerSpec("fifo", {}, [] { return std::make_unique<FifoScheduler>(); });
}

SchedulerSpec scheduler_from_config(const std::string& name, const Config& parameters) {
  const std::string plain = plain_scheduler_name(name);
  if (plain == "asha") return asha_from(parameters);
  if (plain == "hyperband") return hyperband_from(parameters);
  if (plain == "medianstopping") return median_stopping_from(parameters);
  if (plain == "pbtreplay") {
    const Parameters known("pbt_replay", parameters, kReplayKeys);
    return pbt_replay_from_config(parameters);
  }
  if (plain == "fifo") {
    if (!parameters.map().empty()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("scheduler fifo: it has no parameters, found '{}'",
                              parameters.map().front().key));
    }
    return fifo();
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("there is no scheduler '{}': {}", name,
                          SchedulerParameters::suggestion(name, kSchedulers)));
}

}  // namespace tune
