#include "tune/search/pb2/pb2.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
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

  // By draws everywhere, then ever nearer to the best ones.
  Units choose() {
    constexpr int kDraws = 400, kRounds = 4, kNear = 60;
    RandomStream random(asked_.seed, "pb2",
                        std::uint64_t{asked_.trial.value} << 32 | asked_.iteration);
    Units best(bounds_.size());
    double bound = -std::numeric_limits<double>::infinity();
    const auto look_at = [&](const Units& units) {
      const double here = bandit_.upper_bound(next(units));
      if (here > bound) bound = here, best = units;
    };
    for (int i = 0; i < kDraws; ++i) {
      Units units(bounds_.size());
      for (double& unit : units) unit = random.uniform();
      look_at(units);
    }
    double reach = 0.2;
    for (int round = 0; round < kRounds; ++round, reach /= 3) {
      const Units centre = best;
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

// Without any interval yet, or when numbers fail, values are drawn.
Units chosen(const std::vector<Bound>& bounds, const Exploration& asked, std::string& note) {
  constexpr std::size_t kFewest = 2;
  if (asked.history.size() >= kFewest) {
    const Units units = Chooser(bounds, asked).choose();
    if (std::ranges::all_of(units, [](double unit) { return std::isfinite(unit); })) return units;
  }
  note = "drawn, too little is known: ";
  RandomStream random(asked.seed, "pb2 draw",
                      std::uint64_t{asked.trial.value} << 32 | asked.iteration);
  Units units(bounds.size());
  for (double& unit : units) unit = random.uniform();
  return units;
}

Explored explore(const std::vector<Bound>& bounds, const Exploration& asked) try {
  std::string note;
  const Units units = chosen(bounds, asked, note);
  Explored explored{asked.config, std::move(note)};
  bool is_first = true;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const Value* before = asked.config.find(bounds[i].path);
    if (before == nullptr) continue;
    Value value = bounds[i].domain.value(units[i]);
    explored.changes += fmt::format("{}{} {} to {}", std::exchange(is_first, false) ? "" : ", ",
                                    bounds[i].path, to_json(*before), to_json(value));
    explored.config.set(bounds[i].path, std::move(value));
  }
  return explored;
} catch (const std::exception& error) {
  return {asked.config, fmt::format("values stay, since choosing them failed: {}", error.what())};
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
