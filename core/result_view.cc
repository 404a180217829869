#include "core/result_view.h"

#include <algorithm>

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

bool is_met(const StopRule& rule, double value) {
  return rule.at_most ? value <= rule.bound : value >= rule.bound;
}

bool ends_trial(const Reported& report, std::span<const StopRule> rules, Duration max_trial_time) {
  if (max_trial_time > Duration::zero() && report.time_total >= max_trial_time) return true;
  return std::ranges::any_of(rules, [&](const StopRule& rule) {
    const auto found = ResultView(report).number(rule.path);
    return found && is_met(rule, *found);
  });
}

bool reaches(const Reported& report, const Milestone& until) {
  if (until.attribute.empty()) return false;
  const auto reached = ResultView(report).number(until.attribute);
  return reached && *reached >= until.value;
}

}  // namespace tune
