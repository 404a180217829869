#include "core/result_view.h"

#include "core/clock.h"
#include "core/wire.h"

namespace tune {

namespace {

std::optional<double> framework_number(const Reported& report, std::string_view name) {
  if (name == "training_iteration") return static_cast<double>(report.iteration);
  if (name == "time_total_s") return seconds(report.time_total);
  if (name == "time_this_iter_s") return seconds(report.time_this_iter);
  if (name == "time_since_restore") return seconds(report.time_since_restore);
  if (name == "timesteps_total") return report.timesteps_total;
  if (name == "iterations_since_restore") {
    return static_cast<double>(report.iterations_since_restore);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> framework_field(const Reported& report, std::string_view name) {
  if (name == "training_iteration") return Value(report.iteration);
  if (name == "iterations_since_restore") return Value(report.iterations_since_restore);
  const std::optional<double> number = framework_number(report, name);
  return number ? std::optional(Value(*number)) : std::nullopt;
}

std::optional<double> ResultView::number(std::string_view path) const {
  if (path.empty()) return std::nullopt;
  if (const auto reported = find_number(report_->result, path)) return reported;
  return framework_number(*report_, path);
}

}  // namespace tune
