#include "core/result_view.h"

#include <chrono>

#include "core/wire.h"

namespace tune {

std::optional<Value> framework_field(const Reported& report, std::string_view name) {
  const auto in_seconds = [](Duration time) {
    return Value(std::chrono::duration<double>(time).count());
  };
  if (name == "training_iteration") return Value(report.iteration);
  if (name == "time_total_s") return in_seconds(report.time_total);
  if (name == "time_this_iter_s") return in_seconds(report.time_this_iter);
  if (name == "time_since_restore") return in_seconds(report.time_since_restore);
  if (name == "iterations_since_restore") return Value(report.iterations_since_restore);
  if (name == "timesteps_total" && report.timesteps_total) return Value(*report.timesteps_total);
  return std::nullopt;
}

std::optional<double> ResultView::number(std::string_view path) const {
  if (path.empty()) return std::nullopt;
  if (const auto reported = find_number(report_->result, path)) return reported;
  const std::optional<Value> own = framework_field(*report_, path);
  return own ? std::optional(own->number()) : std::nullopt;
}

}  // namespace tune
