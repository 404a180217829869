#include "tune/results/merit_standing.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "schedulers/merit.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

Objective objective_of(const Analysis& analysis) {
  Objective objective;
  objective.metric = analysis.metric();
  objective.mode = analysis.mode();
  objective.goals = analysis.objectives();
  objective.constraints = analysis.constraints();
  return objective;
}

std::optional<double> finite_at(const ResultLine& line, std::string_view path) {
  const std::optional<double> number = line.number(path);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

Merit merit_of(const Objective& objective, const ResultLine& last) {
  const auto numbers =
      numbers_of(objective, [&](std::string_view path) { return finite_at(last, path); });
  return tune::merit_of(numbers.value_or(MeritNumbers{}), goals_of(objective).size());
}

bool keeps(const Constraint& constraint, double value) {
  return !(constraint.min && value < *constraint.min) &&
         !(constraint.max && value > *constraint.max);
}

std::string why_better(const Merit& other, const Merit& own) {
  if (own.violation > 0 && other.violation == 0) return "keeps the constraints";
  if (own.violation > 0) return "breaks the constraints less";
  return own.values.size() > 1 ? "is better by one objective and worse by none" : "is better";
}

void compare(MeritStanding& standing, const Analysis& analysis, const Objective& objective,
             const Merit& own) {
  const std::vector<TrialSummary> front = analysis.pareto();
  standing.front = front.size();
  for (const TrialSummary& other : front) {
    const Merit merit = merit_of(objective, last_result_line(other.directory));
    if (!dominates(merit, own)) continue;
    standing.better = other.id;
    standing.better_why = why_better(merit, own);
    return;
  }
}

const char* name_of(Mode mode) {
  return mode == Mode::kMin ? "min" : "max";
}

std::string text_of(const Constraint& constraint) {
  std::vector<std::string> bounds;
  if (constraint.min)
    bounds.push_back(fmt::format("{} >= {:.6g}", constraint.metric, *constraint.min));
  if (constraint.max)
    bounds.push_back(fmt::format("{} <= {:.6g}", constraint.metric, *constraint.max));
  return join(bounds, " and ");
}

std::string text_of(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "missing";
}

}  // namespace

std::optional<MeritStanding> merit_standing(const Analysis& analysis, const TrialSummary& trial) {
  const Objective objective = objective_of(analysis);
  const ResultLine last = last_result_line(trial.directory);
  if (!needs_merit(objective) || last.result.map().empty()) return std::nullopt;
  MeritStanding standing;
  for (const Goal& goal : goals_of(objective)) {
    standing.goals.push_back({goal, last.number(goal.metric)});
  }
  for (const Constraint& constraint : objective.constraints) {
    const std::optional<double> value = last.number(constraint.metric);
    const bool is_kept = value && std::isfinite(*value) && keeps(constraint, *value);
    standing.bounds.push_back({constraint, value, is_kept});
  }
  const Merit own = merit_of(objective, last);
  standing.compares = std::isfinite(own.violation);
  if (standing.compares) compare(standing, analysis, objective, own);
  return standing;
}

Value to_value(const MeritStanding& standing) {
  Value::List goals;
  for (const auto& [goal, value] : standing.goals) {
    Value one{{"metric", goal.metric}, {"mode", name_of(goal.mode)}};
    if (value && std::isfinite(*value)) one.set("value", *value);
    goals.push_back(std::move(one));
  }
  Value::List bounds;
  for (const auto& [constraint, value, is_kept] : standing.bounds) {
    Value one{{"metric", constraint.metric}};
    if (constraint.min) one.set("min", *constraint.min);
    if (constraint.max) one.set("max", *constraint.max);
    if (value && std::isfinite(*value)) one.set("value", *value);
    one.set("kept", is_kept);
    bounds.push_back(std::move(one));
  }
  Value value{{"objectives", Value::make_list(std::move(goals))},
              {"constraints", Value::make_list(std::move(bounds))},
              {"on_front", standing.compares && standing.better.empty()}};
  if (!standing.better.empty()) value.set("dominated_by", standing.better);
  return value;
}

std::vector<std::string> lines_of(const MeritStanding& standing) {
  std::vector<std::string> goals;
  for (const auto& [goal, value] : standing.goals) {
    goals.push_back(fmt::format("{} {} ({})", goal.metric, text_of(value), name_of(goal.mode)));
  }
  std::vector<std::string> lines = {join(goals, ", ")};
  for (const auto& [constraint, value, is_kept] : standing.bounds) {
    if (is_kept) {
      lines.push_back("keeps " + text_of(constraint));
    } else {
      lines.push_back(fmt::format("breaks {}: it is {}", text_of(constraint), text_of(value)));
    }
  }
  if (!standing.compares) {
    lines.push_back(
        "not compared with other trials: its last result has no finite value of one of these");
  } else if (!standing.better.empty()) {
    lines.push_back(fmt::format("not on the front: {} {}", standing.better, standing.better_why));
  } else {
    lines.push_back(fmt::format("on the front, which has {} trial{}", standing.front,
                                standing.front == 1 ? "" : "s"));
  }
  return lines;
}

}  // namespace tune
