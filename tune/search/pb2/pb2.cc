#include "tune/search/pb2/pb2.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/random.h"
#include "schedulers/pbt_scheduler.h"
#include "schedulers/scheduler_parameters.h"
#include "tune/search/pb2/bandit.h"
#include "tune/search/unit_domain.h"

namespace tune {

namespace {

constexpr const char* kName = "pb2";
const std::vector<std::string> kKeys = {"perturbation_interval",
                                        "hyperparam_bounds",
                                        "quantile_fraction",
                                        "burn_in_period",
                                        "require_attrs",
                                        "synch",
                                        "time_attr",
                                        "metric",
                                        "mode"};

// One parameter with its range.
struct Bound {
  std::string path;
  UnitDomain domain;
};

[[noreturn]] void refuse_bound(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kBadInput, fmt::format("scheduler pb2: hyperparam_bounds{}{}: {}",
                                                path.empty() ? "" : "/", path, why));
}

Domain range_of(const std::string& path, const SearchSpace& node) {
  if (node.is_domain()) {
    const bool is_range = std::holds_alternative<Domain::Uniform>(node.domain().kind()) ||
                          std::holds_alternative<Domain::Integer>(node.domain().kind());
    if (!is_range)
      refuse_bound(path,
                   "it has no order or no bounds: give uniform, loguniform, "
                   "randint or [low, high]");
    return node.domain();
  }
  const Value& constant = node.constant();
  const bool is_pair = constant.is_list() && constant.list().size() == 2 &&
                       constant.list()[0].is_number() && constant.list()[1].is_number();
  if (!is_pair) refuse_bound(path, "expected [low, high] or a domain");
  return uniform(constant.list()[0].number(), constant.list()[1].number());
}

void gather(const SearchSpace& space, const std::string& prefix, std::vector<Bound>& found) {
  for (const SpaceMember& member : space.members()) {
    const std::string path = prefix.empty() ? member.key : prefix + "/" + member.key;
    if (member.value.is_map()) {
      gather(member.value, path, found);
    } else {
      found.push_back({path, UnitDomain(range_of(path, member.value))});
    }
  }
}

std::vector<Bound> bounds_of(const SearchSpace& space) {
  if (!space.is_map()) refuse_bound("", "expected parameters with ranges");
  std::vector<Bound> found;
  gather(space, "", found);
  if (found.empty()) refuse_bound("", "it names no parameter");
  return found;
}

// ---- Features -----------------------------------------------------------------------------------

// A value outside its range counts as the nearer end; one that is not there as the middle.
double unit_of(const Bound& bound, const Config& config) {
  const Value* value = config.find(bound.path);
  if (value == nullptr || !value->is_number()) return 0.5;
  if (const auto unit = bound.domain.unit(*value)) return *unit;
  const double low = bound.domain.value(0).number(), high = bound.domain.value(1).number();
  return std::abs(value->number() - low) < std::abs(value->number() - high) ? 0 : 1;
}

struct Scale {
  double low = 0;
  double width = 0;
  double of(double value) const { return width > 0 ? (value - low) / width : 0; }
};

template <class Read>
Scale scale_of(std::span<const Interval> history, Read read) {
  Scale scale{read(history.front()), 0};
  double high = scale.low;
  for (const Interval& one : history) {
    scale.low = std::min(scale.low, read(one));
    high = std::max(high, read(one));
  }
  scale.width = high - scale.low;
  return scale;
}

// ---- The choice ---------------------------------------------------------------------------------

using Units = std::vector<double>;  // by bound

// The configuration with these values, and the changes in words.
Explored changed(const std::vector<Bound>& bounds, const Config& config, const Units& units) {
  Explored explored{config, {}};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const Value* before = config.find(bounds[i].path);
    if (before == nullptr) continue;
    Value value = bounds[i].domain.value(units[i]);
    explored.changes += fmt::format("{}{} {} to {}", explored.changes.empty() ? "" : ", ",
                                    bounds[i].path, to_json(*before), to_json(value));
    explored.config.set(bounds[i].path, std::move(value));
  }
  return explored;
}

class Chooser {
 public:
  Chooser(const std::vector<Bound>& bounds, const Exploration& asked)
      : bounds_(bounds),
        asked_(asked),
        times_(scale_of(asked.history, [](const Interval& one) { return one.time; })),
        scores_(scale_of(asked.history, [](const Interval& one) { return one.before; })),
        bandit_(points(), gains()) {
    for (const Packed* config : asked.running) bandit_.expect(next(units_of(*config)));
  }

  // By draws everywhere, then ever nearer to the best ones. Nothing: no bound was finite, or no
  // values kept the rules.
  std::optional<Units> choose() {
    constexpr int kDraws = 400, kRounds = 4, kNear = 60;
    RandomStream random = asked_.luck("pb2", 0);
    std::optional<Units> best;
    double bound = -std::numeric_limits<double>::infinity();
    const auto look_at = [&](const Units& units) {
      const double here = bandit_.upper_bound(next(units));
      if (!std::isfinite(here) || here <= bound) return;
      if (asked_.keeps && !asked_.keeps(changed(bounds_, asked_.config, units).config)) return;
      bound = here;
      best = units;
    };
    for (int i = 0; i < kDraws; ++i) {
      Units units(bounds_.size());
      for (double& unit : units) unit = random.uniform();
      look_at(units);
    }
    double reach = 0.2;
    for (int round = 0; best && round < kRounds; ++round, reach /= 3) {
      const Units centre = *best;
      for (int i = 0; i < kNear; ++i) {
        Units units = centre;
        for (double& unit : units) unit = std::clamp(unit + reach * random.normal(), 0.0, 1.0);
        look_at(units);
      }
    }
    return best;
  }

 private:
  Units units_of(const Packed& config) const {
    const Config values(unpack(config));
    Units units;
    for (const Bound& bound : bounds_) units.push_back(unit_of(bound, values));
    return units;
  }
  Bandit::Point point(double time, double score, Units units) const {
    units.push_back(scores_.of(score));
    return {times_.of(time), std::move(units)};
  }
  // The next training: from the donor's value on, now.
  Bandit::Point next(const Units& units) const {
    return point(asked_.time, asked_.donor_score, units);
  }
  std::vector<Bandit::Point> points() const {
    std::vector<Bandit::Point> all;
    for (const Interval& one : asked_.history) {
      all.push_back(point(one.time, one.before, units_of(one.config)));
    }
    return all;
  }
  std::vector<double> gains() const {
    std::vector<double> all;
    for (const Interval& one : asked_.history) all.push_back(one.gain);
    return all;
  }

  const std::vector<Bound>& bounds_;
  const Exploration& asked_;
  Scale times_;
  Scale scores_;
  Bandit bandit_;
};

// The model's values; nothing, and `why`, when there can be none.
std::optional<Units> chosen(const std::vector<Bound>& bounds, const Exploration& asked,
                            std::string& why) try {
  constexpr std::size_t kFewest = 2;
  why = "too little is known";
  if (asked.history.size() < kFewest) return std::nullopt;
  why = "the model's numbers failed, or no values of its choice kept to `where`";
  return Chooser(bounds, asked).choose();
} catch (const std::exception& error) {
  why = fmt::format("the model failed: {}", error.what());
  return std::nullopt;
}

// The donor's values stay when none that are drawn keep the rules.
Explored drawn(const std::vector<Bound>& bounds, const Exploration& asked, const std::string& why) {
  for (int attempt = 0; attempt < Exploration::kMostTries; ++attempt) {
    RandomStream random = asked.luck("pb2 draw", attempt);
    Units units(bounds.size());
    for (double& unit : units) unit = random.uniform();
    Explored explored = changed(bounds, asked.config, units);
    if (!asked.may_be(explored.config)) continue;
    explored.changes = fmt::format("drawn, {}: {}", why, explored.changes);
    return explored;
  }
  return {asked.config, fmt::format("values stay, since none of {} draws kept to `where`",
                                    Exploration::kMostTries)};
}

Explored explore(const std::vector<Bound>& bounds, const Exploration& asked) {
  std::string why;
  const std::optional<Units> units = chosen(bounds, asked, why);
  return units ? changed(bounds, asked.config, *units) : drawn(bounds, asked, why);
}

}  // namespace

SchedulerSpec pb2(Pb2Options options) {
  PbtRules rules = rules_of(options);
  rules.keeps_intervals = true;
  check_rules(kName, rules);
  std::vector<Bound> bounds = bounds_of(options.hyperparam_bounds);
  std::vector<std::string> paths;
  for (const Bound& bound : bounds) paths.push_back(bound.path);
  Config parameters = parameters_of(rules);
  parameters.set("hyperparam_bounds", options.hyperparam_bounds.describe());
  SchedulerSpec spec(kName, std::move(parameters), [rules, bounds = std::move(bounds)] {
    return std::make_unique<PbtScheduler>(
        kName, rules, [bounds](const Exploration& asked) { return explore(bounds, asked); });
  });
  spec.set_changed_parameters(std::move(paths));
  return spec;
}

SchedulerSpec pb2_from_config(const Config& written) {
  const SchedulerParameters parameters(kName, written, kKeys);
  Pb2Options options;
  read_rules(parameters, options);
  if (const Value* bounds = written.find("hyperparam_bounds")) {
    std::vector<SpaceComplaint> complaints;
    options.hyperparam_bounds = search_space_from_value(*bounds, complaints);
    if (!complaints.empty()) refuse_bound(complaints.front().path, complaints.front().message);
  }
  return pb2(std::move(options));
}

}  // namespace tune
