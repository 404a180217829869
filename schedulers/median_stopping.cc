#include "schedulers/median_stopping.h"

#include <cmath>

#include "schedulers/median_scheduler.h"
#include "schedulers/option_check.h"

namespace tune {

SchedulerSpec median_stopping(MedianStoppingOptions options) {
  const OptionCheck check("median_stopping");
  check.require(options.grace_period > 0 && std::isfinite(options.grace_period), "grace_period",
                options.grace_period, "above 0");
  check.require(options.min_samples_required >= 1, "min_samples_required",
                options.min_samples_required, "at least 1");
  check.time_attr(options.time_attr);
  Config parameters{{"grace_period", options.grace_period},
                    {"min_samples_required", options.min_samples_required},
                    {"rule", options.rule == MedianRule::kMean ? "mean" : "best"},
                    {"time_attr", options.time_attr}};
  add_objective(parameters, options.metric, options.mode);
  return SchedulerSpec("median_stopping", std::move(parameters),
                       [options] { return std::make_unique<MedianScheduler>(options); });
}

}  // namespace tune
