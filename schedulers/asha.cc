#include "schedulers/asha.h"

#include <cmath>

#include "schedulers/asha_promotion.h"
#include "schedulers/asha_scheduler.h"
#include "schedulers/option_check.h"

namespace tune {

namespace {

constexpr std::size_t kMaxRungs = 10000;  // a factor this near to 1 is a mistake

void check(const AshaOptions& options) {
  const OptionCheck check("asha");
  check.require(options.max_t > 0 && std::isfinite(options.max_t), "max_t", options.max_t,
                "above 0");
  check.require(options.grace_period > 0 && options.grace_period <= options.max_t, "grace_period",
                options.grace_period, "above 0 and at most max_t");
  check.require(options.reduction_factor > 1 && std::isfinite(options.reduction_factor),
                "reduction_factor", options.reduction_factor, "above 1");
  check.require(options.brackets > 0 && options.brackets <= 1000, "brackets", options.brackets,
                "from 1 to 1000");
  check.require(options.min_rung_size >= 1, "min_rung_size", options.min_rung_size, "at least 1");
  check.require(options.open_after >= 0, "open_after", options.open_after, "at least 0");
  check.require((std::log(options.max_t) - std::log(options.grace_period)) /
                        std::log(options.reduction_factor) <
                    static_cast<double>(kMaxRungs),
                "reduction_factor", options.reduction_factor,
                "large enough for fewer than 10000 rungs");
  check.time_attr(options.time_attr);
}

Config describe(const AshaOptions& options) {
  Config parameters{{"max_t", options.max_t},
                    {"grace_period", options.grace_period},
                    {"reduction_factor", options.reduction_factor},
                    {"brackets", options.brackets},
                    {"time_attr", options.time_attr},
                    {"stop_last_trials", options.stop_last_trials}};
  const bool stops = options.type == AshaType::kStop;
  if (stops) parameters.set("rule", options.rule == AshaRule::kRay ? "ray" : "top");
  parameters.set("min_rung_size", options.min_rung_size);
  parameters.set("type", stops ? "stop" : "promote");
  if (options.open_after > 0) {
    parameters.set("open_after", options.open_after);
    parameters.set("open_silent", options.open_silent);
  }
  add_objective(parameters, options.metric, options.mode);
  return parameters;
}

}  // namespace

SchedulerSpec asha(AshaOptions options) {
  check(options);
  return SchedulerSpec("asha", describe(options), [options]() -> std::unique_ptr<TrialScheduler> {
    if (options.type == AshaType::kPromote) return std::make_unique<AshaPromotion>(options);
    return std::make_unique<AshaScheduler>(options);
  });
}

}  // namespace tune
