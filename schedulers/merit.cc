#include "schedulers/merit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tune {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The share of the bound's size that is left; negative when it is broken.
double share(double left, double bound) {
  const double size = std::abs(bound);
  return size > 0 ? left / size : left;
}

double margin(const Constraint& constraint, double value) {
  double margin = kInfinity;
  if (constraint.max) margin = std::min(margin, share(*constraint.max - value, *constraint.max));
  if (constraint.min) margin = std::min(margin, share(value - *constraint.min, *constraint.min));
  return margin;
}

double finite_or_worst(double value) {
  return std::isfinite(value) ? value : -kInfinity;
}

}  // namespace

bool needs_merit(const Objective& objective) {
  return !objective.goals.empty() || !objective.constraints.empty();
}

std::vector<Goal> goals_of(const Objective& objective) {
  if (!objective.goals.empty() || objective.metric.empty()) return objective.goals;
  return {{objective.metric, objective.mode}};
}

std::vector<std::string> metrics_of(const Objective& objective) {
  std::vector<std::string> metrics;
  const auto add = [&](const std::string& metric) {
    if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
  };
  for (const Goal& goal : goals_of(objective)) add(goal.metric);
  for (const Constraint& constraint : objective.constraints) add(constraint.metric);
  return metrics;
}

std::string describe(const Objective& objective) {
  std::string text;
  for (const Goal& goal : goals_of(objective)) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", goal.metric,
                        goal.mode == Mode::kMin ? "min" : "max");
  }
  const char* joint = "; ";
  for (const auto& [metric, min, max] : objective.constraints) {
    for (const auto& [sign, bound] : {std::pair(">=", min), std::pair("<=", max)}) {
      if (!bound) continue;
      text += fmt::format("{}{} {} {:.10g}", joint, metric, sign, *bound);
      joint = ", ";
    }
  }
  return text;
}

std::optional<MeritNumbers> numbers_of(const Objective& objective, const NumberAt& number) {
  MeritNumbers numbers;
  for (const Goal& goal : goals_of(objective)) {
    const std::optional<double> value = number(goal.metric);
    if (!value) return std::nullopt;
    numbers.push_back(finite_or_worst(goal.mode == Mode::kMax ? *value : -*value));
  }
  for (const Constraint& constraint : objective.constraints) {
    const std::optional<double> value = number(constraint.metric);
    if (!value) return std::nullopt;
    numbers.push_back(std::isfinite(*value) ? margin(constraint, *value) : -kInfinity);
  }
  return numbers;
}

Merit merit_of(std::span<const double> numbers, std::size_t goals) {
  Merit merit;
  if (numbers.size() < goals) return {std::vector<double>(goals, -kInfinity), kInfinity};
  merit.values.assign(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(goals));
  const bool is_known =
      std::ranges::all_of(merit.values, [](double value) { return std::isfinite(value); });
  if (!is_known) merit.violation = kInfinity;
  for (const double margin : numbers.subspan(goals)) merit.violation += std::max(0.0, -margin);
  return merit;
}

bool dominates(const Merit& a, const Merit& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  if (a.violation > 0) return false;
  bool is_better = false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i] < b.values[i]) return false;
    is_better = is_better || a.values[i] > b.values[i];
  }
  return is_better;
}

}  // namespace tune
