#include "schedulers/option_check.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

void OptionCheck::require(bool holds, const char* name, double value, const char* wanted) const {
  if (holds) return;
  throw Error(ErrorCode::kBadInput, fmt::format("scheduler {}: {} is {}: it must be {}", scheduler_,
                                                name, value, wanted));
}

void OptionCheck::time_attr(const std::string& time_attr) const {
  if (!time_attr.empty()) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("scheduler {}: time_attr is empty: name a key of the result", scheduler_));
}

void add_objective(Config& parameters, const std::string& metric, std::optional<Mode> mode) {
  if (!metric.empty()) parameters.set("metric", metric);
  if (mode) parameters.set("mode", *mode == Mode::kMax ? "max" : "min");
}

}  // namespace tune
