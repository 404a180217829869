#include "tune/spec/objectives.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/key_path.h"
#include "core/strings.h"

namespace tune {

namespace {

constexpr const char* kObjectivesExample = "[{metric: loss, mode: min}, {metric: accuracy}]";
constexpr const char* kConstraintsExample = "[{metric: latency_ms, max: 20}]";

// The maps of a list; anything else is told.
const Value::List* list_at(OptionReader& reader, const char* key, const char* example) {
  const Value* found = reader.take(key);
  if (found == nullptr) return nullptr;
  if (found->is_list()) return &found->list();
  reader.complain(
      key, fmt::format("expected a list, as in {}, found {}", example, describe_value(*found)));
  return nullptr;
}

void read_mode(OptionReader& item, Mode& mode) {
  std::string word = mode == Mode::kMin ? "min" : "max";
  item.read("mode", word);
  if (word != "max" && word != "min") {
    return item.complain("mode", fmt::format("expected max or min, found '{}'", word));
  }
  mode = word == "min" ? Mode::kMin : Mode::kMax;
}

}  // namespace

void read_objectives(OptionReader& reader, std::vector<Goal>& objectives) {
  const Value::List* list = list_at(reader, "objectives", kObjectivesExample);
  if (list == nullptr) return;
  objectives.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    OptionReader item((*list)[i], reader.path_of(fmt::format("objectives/{}", i)),
                      reader.complaints());
    Goal goal;
    item.read("metric", goal.metric);
    read_mode(item, goal.mode);
    item.finish();
    objectives.push_back(std::move(goal));
  }
}

void read_constraints(OptionReader& reader, std::vector<Constraint>& constraints) {
  const Value::List* list = list_at(reader, "constraints", kConstraintsExample);
  if (list == nullptr) return;
  constraints.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    OptionReader item((*list)[i], reader.path_of(fmt::format("constraints/{}", i)),
                      reader.complaints());
    Constraint constraint;
    item.read("metric", constraint.metric);
    item.read("min", constraint.min);
    item.read("max", constraint.max);
    item.finish();
    constraints.push_back(std::move(constraint));
  }
}

Value objectives_to_value(const std::vector<Goal>& objectives) {
  Value::List list;
  for (const Goal& goal : objectives) {
    list.push_back(
        Value{{"metric", goal.metric}, {"mode", goal.mode == Mode::kMin ? "min" : "max"}});
  }
  return Value::make_list(std::move(list));
}

Value constraints_to_value(const std::vector<Constraint>& constraints) {
  Value::List list;
  for (const auto& [metric, min, max] : constraints) {
    Value item{{"metric", metric}};
    if (min) item.set("min", *min);
    if (max) item.set("max", *max);
    list.push_back(std::move(item));
  }
  return Value::make_list(std::move(list));
}

// ---- Complaints ----

namespace {

class ObjectivesCheck {
 public:
  ObjectivesCheck(RunOptions& options, std::vector<Complaint>& complaints)
      : options_(options), complaints_(complaints) {}

  void run() {
    if (!options_.objectives.empty()) check_beside_metric();
    check_metrics("objectives", options_.objectives);
    check_metrics("constraints", options_.constraints);
    for (std::size_t i = 0; i < options_.constraints.size(); ++i) {
      check_bounds(fmt::format("constraints/{}", i), options_.constraints[i]);
    }
    if (options_.objectives.size() == 1 && options_.metric.empty() && !options_.mode) {
      options_.metric = options_.objectives.front().metric;
      options_.mode = options_.objectives.front().mode;
      options_.objectives.clear();
    }
  }

 private:
  void complain(std::string path, std::string message) {
    complaints_.push_back({.path = std::move(path), .message = std::move(message)});
  }

  void check_beside_metric() {
    if (!options_.metric.empty()) {
      complain("objectives", fmt::format("both metric ('{}') and objectives are given: keep one",
                                         options_.metric));
    } else if (options_.mode) {
      complain("mode", "each of the objectives has a mode of its own: write it there");
    }
  }

  template <class Item>
  void check_metrics(const char* key, const std::vector<Item>& items) {
    std::vector<std::string> seen;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string& metric = items[i].metric;
      const std::string path = fmt::format("{}/{}/metric", key, i);
      if (!is_key_path(metric)) {
        complain(path, metric.empty() ? "is missing: name a metric of the results"
                                      : fmt::format("'{}' is not a key path: write it like loss or "
                                                    "loss/test",
                                                    metric));
      } else if (std::ranges::find(seen, metric) != seen.end()) {
        complain(path, fmt::format("'{}' is there twice: keep one", metric));
      }
      seen.push_back(metric);
    }
  }

  void check_bounds(const std::string& path, const Constraint& constraint) {
    const auto& [metric, min, max] = constraint;
    if (!min && !max) {
      complain(path, fmt::format("no bound is given: write min or max, as in {{metric: {}, "
                                 "max: 20}}",
                                 metric.empty() ? "latency_ms" : metric));
    }
    for (const auto& [key, bound] : {std::pair("min", min), std::pair("max", max)}) {
      if (bound && !std::isfinite(*bound)) {
        complain(join_path(path, key), fmt::format("{} is not a bound: give a number", *bound));
      }
    }
    if (min && max && *min > *max) {
      complain(path, fmt::format("min {:g} is above max {:g}: no value keeps both", *min, *max));
    }
  }

  RunOptions& options_;
  std::vector<Complaint>& complaints_;
};

}  // namespace

void check_objectives(RunOptions& options, std::vector<Complaint>& complaints) {
  ObjectivesCheck(options, complaints).run();
}

bool has_objective(const RunOptions& options) {
  return !options.metric.empty() || !options.objectives.empty();
}

Objective objective_of(const RunOptions& options) {
  Objective objective;
  objective.metric = options.metric;
  objective.mode = options.mode.value_or(Mode::kMax);
  objective.goals = options.objectives;
  objective.constraints = options.constraints;
  return objective;
}

}  // namespace tune
