#include "tune/simulate/task.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "schedulers/merit.h"

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

// The reason why the domain of a task does not hold this value; empty: it does.
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
  if (value.is_number() && is_within(value.as<double>(), extent.low, extent.high)) return {};
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

std::vector<SearchSpace> options_of(const SearchSpace& space) {
  if (!space.is_domain()) return {space};
  std::vector<SearchSpace> options;
  if (const auto* grid = std::get_if<Domain::Grid>(&space.domain().kind())) {
    options.assign(grid->values.begin(), grid->values.end());
  }
  if (const auto* choice = std::get_if<Domain::Choice>(&space.domain().kind())) {
    for (std::size_t i = 0; i < choice->values.size(); ++i) {
      const bool is_space = !choice->spaces.empty() && choice->spaces[i] != nullptr;
      options.push_back(is_space ? *choice->spaces[i] : SearchSpace(choice->values[i]));
    }
  }
  return options;
}

// Whether the constants of a task's option are those of a sweep's.
bool has_constants_of(const SearchSpace& option, const SearchSpace& known) {
  if (!known.is_map() || !option.is_map()) return known.frame() == option.frame();
  return std::all_of(known.members().begin(), known.members().end(), [&](const auto& member) {
    const SearchSpace* own = option.find(member.key);
    return !member.value.is_constant() ||
           (own != nullptr && own->is_constant() && own->constant() == member.value.constant());
  });
}

// A sweep's space beside a task's.
class Comparison {
 public:
  explicit Comparison(const std::string& task) : task_(task) {}

  std::vector<SpaceComplaint> run(const SearchSpace& space, const SearchSpace& known) && {
    compare_maps(space, known, {});
    return std::move(found_);
  }

 private:
  void compare_maps(const SearchSpace& space, const SearchSpace& known, const std::string& path) {
    for (const SpaceMember& member : space.members()) {
      const SearchSpace* there = known.find(member.key);
      if (there != nullptr) {
        compare(member.value, *there, path + member.key);
      } else {
        refuse_searched(member.value, path + member.key);
      }
    }
    for (const SpaceMember& member : known.members()) {
      if (space.find(member.key) != nullptr) continue;
      const SearchSpace missing = {{member.key, member.value}};
      for (const auto& [below, domain] : missing.domains()) {
        if (domain->is_function()) continue;
        complain(path + below,
                 fmt::format("is missing: {} has it as {}", task_, domain->describe().dump()));
      }
    }
  }
  void compare(const SearchSpace& space, const SearchSpace& known, const std::string& path) {
    if (known.is_domain() && known.domain().conditional() != nullptr) {
      for (const SearchSpace& option : options_of(space)) compare_option(option, known, path);
      if (options_of(space).empty()) refuse_searched(space, path);
    } else if (known.is_map() && space.is_map()) {
      compare_maps(space, known, path + "/");
    } else if (known.is_map() || space.is_map()) {
      refuse_searched(space, path);
    } else {
      const Extent extent =
          known.is_domain() ? extent_of(known.domain()) : Extent{0, 0, {known.constant()}};
      complain(path, space.is_domain()   ? why_beyond(space.domain(), extent)
                     : known.is_domain() ? why_outside(space.constant(), extent)
                                         : std::string());
    }
  }
  // With the option of its constants. Several may have them: then with the one it fits best.
  void compare_option(const SearchSpace& option, const SearchSpace& known,
                      const std::string& path) {
    std::optional<std::vector<SpaceComplaint>> best;
    for (const SearchSpace& there : options_of(known)) {
      if (!has_constants_of(option, there)) continue;
      Comparison comparison(task_);
      if (option.is_map()) comparison.compare_maps(option, there, path + "/");
      if (!best || comparison.found_.size() < best->size()) best = std::move(comparison.found_);
    }
    if (best) {
      found_.insert(found_.end(), best->begin(), best->end());
    } else {
      complain(path, fmt::format("{} is not one of the task's options {}", option.describe().dump(),
                                 known.domain().describe().dump()));
    }
  }
  void refuse_searched(const SearchSpace& space, const std::string& path) {
    const SearchSpace searched = {{"x", space}};
    for (const auto& [below, domain] : searched.domains()) {
      complain(path + below.substr(1), fmt::format("{} has no parameter of that name", task_));
    }
  }
  void complain(const std::string& path, const std::string& why) {
    if (!why.empty()) found_.push_back({path, why});
  }

  const std::string& task_;
  std::vector<SpaceComplaint> found_;
};

}  // namespace

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

bool is_within(double value, double low, double high) {
  constexpr double kRounding = 1e-12;  // relative
  return value >= low - kRounding * std::abs(low) && value <= high + kRounding * std::abs(high);
}

SearchSpace without_functions(const SearchSpace& space) {
  if (space.is_map()) {
    SearchSpace kept;
    for (const SpaceMember& member : space.members()) {
      const bool is_function = member.value.is_domain() && member.value.domain().is_function();
      if (!is_function) kept.set(member.key, without_functions(member.value));
    }
    return kept;
  }
  if (!space.is_domain() || space.domain().conditional() == nullptr) return space;
  std::vector<SearchSpace> options;
  for (const SearchSpace& option : options_of(space)) options.push_back(without_functions(option));
  return choice(std::move(options));
}

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

bool keeps_constraints(const Objective& objective, const std::vector<TaskMetric>& metrics,
                       std::span<const double> values) {
  if (objective.constraints.empty()) return true;
  const auto value_of = [&](std::string_view name) -> std::optional<double> {
    const auto found = std::ranges::find(metrics, name, &TaskMetric::name);
    if (found == metrics.end()) return std::nullopt;
    return values[static_cast<std::size_t>(found - metrics.begin())];
  };
  const std::optional<MeritNumbers> numbers = numbers_of(objective, value_of);
  return numbers && merit_of(*numbers, goals_of(objective).size()).violation == 0;
}

double median_of_kept(const Objective& objective, const std::string& task,
                      std::vector<double> values) {
  if (objective.constraints.empty()) return median_of(std::move(values));
  const std::size_t all = values.size();
  std::erase(values, kWorstEnd);
  if (!values.empty()) return median_of(std::move(values));
  throw Error(ErrorCode::kBadInput,
              fmt::format("{}: none of {} configurations keeps the constraints: {}", task, all,
                          describe(objective)));
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
  std::vector<SpaceComplaint> found = Comparison(task.name()).run(space, task.space());
  if (found.empty() || &task.space() == &task.flat_space()) return found;
  std::vector<SpaceComplaint> flat = Comparison(task.name()).run(space, task.flat_space());
  return flat.size() < found.size() ? flat : found;
}

}  // namespace tune
