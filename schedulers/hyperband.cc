#include "schedulers/hyperband.h"

#include <cmath>

#include "schedulers/hyperband_scheduler.h"
#include "schedulers/option_check.h"

namespace tune {

namespace {

constexpr double kMaxTrials = 1e6;  // of a bracket: with more the rungs are a mistake

void check_options(const HyperBandOptions& options) {
  const OptionCheck check("hyperband");
  check.require(options.max_t > 0 && std::isfinite(options.max_t), "max_t", options.max_t,
                "above 0");
  check.require(options.grace_period > 0 && options.grace_period <= options.max_t, "grace_period",
                options.grace_period, "above 0 and at most max_t");
  check.require(options.reduction_factor >= 2 && std::isfinite(options.reduction_factor),
                "reduction_factor", options.reduction_factor, "at least 2");
  check.require(options.max_t / options.grace_period <= kMaxTrials / options.reduction_factor,
                "grace_period", options.grace_period,
                "larger: from there to max_t a bracket would take more than 1000000 trials");
  check.time_attr(options.time_attr);
}

}  // namespace

SchedulerSpec hyperband(HyperBandOptions options) {
  check_options(options);
  Config parameters{{"max_t", options.max_t},
                    {"grace_period", options.grace_period},
                    {"reduction_factor", options.reduction_factor},
                    {"time_attr", options.time_attr},
                    {"stop_last_trials", options.stop_last_trials}};
  add_objective(parameters, options.metric, options.mode);
  return SchedulerSpec("hyperband", std::move(parameters),
                       [options] { return std::make_unique<HyperBandScheduler>(options); });
}

}  // namespace tune
