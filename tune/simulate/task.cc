#include "tune/simulate/task.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"

namespace tune {

namespace {

// The values a domain can draw: a range, or a list.
struct Extent {
  double low = 0;
  double high = 0;
  std::vector<Value> values = {};  // not empty: these instead
  bool is_known = true;            // false: any number, or what a function gives
};

Extent extent_of(const Domain& domain) {
  if (const auto* range = std::get_if<Domain::Uniform>(&domain.kind())) {
    return {range->low, range->high};
  }
  if (const auto* range = std::get_if<Domain::Integer>(&domain.kind())) {
    const std::int64_t last = range->q > 0 ? range->high : range->high - 1;
    return {static_cast<double>(range->low), static_cast<double>(last)};
  }
  if (const auto* choice = std::get_if<Domain::Choice>(&domain.kind())) {
    return {0, 0, choice->values};
  }
  if (const auto* grid = std::get_if<Domain::Grid>(&domain.kind())) return {0, 0, grid->values};
  return {0, 0, {}, false};
}

// Why the domain of a task does not hold this value; empty: it does.
std::string why_outside(const Value& value, const Extent& extent) {
  if (!extent.is_known) return {};
  if (!extent.values.empty()) {
    const auto is_same = [&](const Value& one) {
      if (one.is_number() && value.is_number()) return one.as<double>() == value.as<double>();
      return one == value;
    };
    if (std::any_of(extent.values.begin(), extent.values.end(), is_same)) return {};
    return fmt::format("{} is not one of the task's {}", value.dump(),
                       Value::make_list(extent.values).dump());
  }
  if (value.is_number() && value.as<double>() >= extent.low && value.as<double>() <= extent.high) {
    return {};
  }
  return fmt::format("{} is not within the task's {} to {}", value.dump(), extent.low, extent.high);
}

std::string why_beyond(const Domain& domain, const Extent& extent) {
  const Extent own = extent_of(domain);
  if (!own.is_known || !extent.is_known) return {};
  if (own.values.empty()) {
    std::string why = why_outside(own.low, extent);
    return why.empty() ? why_outside(own.high, extent) : why;
  }
  for (const Value& value : own.values) {
    if (std::string why = why_outside(value, extent); !why.empty()) return why;
  }
  return {};
}

}  // namespace

std::vector<Task::End> Task::ends(const std::vector<Config>& configs, std::size_t metric) const {
  std::vector<End> found;
  for (const Config& config : configs) {
    Given given;
    const auto curve = begin(config, given);
    End end{curve->values(curve->length())[metric], 0};
    for (std::uint64_t step = 1; step <= curve->length(); ++step)
      end.seconds += curve->seconds(step);
    found.push_back(end);
  }
  return found;
}

std::size_t find_metric(const Task& task, const std::string& name) {
  std::vector<std::string> names;
  for (const TaskMetric& metric : task.metrics()) names.push_back(metric.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw Error(ErrorCode::kBadInput, fmt::format("{} has no metric '{}': it has {}", task.name(),
                                                name, join(names, ", ")));
}

std::vector<SpaceComplaint> misfits(const SearchSpace& space, const Task& task) {
  std::vector<SpaceComplaint> found;
  const SearchSpace& known = task.space();
  for (const auto& [path, domain] : space.domains()) {
    const SearchSpace* node = known.find(path);
    if (node == nullptr || !(node->is_domain() || node->is_constant())) {
      found.push_back({path, fmt::format("{} has no parameter of that name", task.name())});
      continue;
    }
    const Extent extent =
        node->is_domain() ? extent_of(node->domain()) : Extent{0, 0, {node->constant()}};
    if (std::string why = why_beyond(*domain, extent); !why.empty()) found.push_back({path, why});
  }
  for (const auto& [path, domain] : known.domains()) {
    const SearchSpace* node = space.find(path);
    if (node == nullptr) {
      found.push_back({path, fmt::format("is missing: {} has it as {}", task.name(),
                                         domain->describe().dump())});
    } else if (node->is_constant()) {
      std::string why = why_outside(node->constant(), extent_of(*domain));
      if (!why.empty()) found.push_back({path, why});
    }
  }
  return found;
}

}  // namespace tune
