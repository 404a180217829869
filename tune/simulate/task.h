// Task: a training that is not done but looked up: what each configuration would report, and how
// long each step would take. Surrogates, tables and earlier experiments are tasks. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/value.h"
#include "schedulers/trial_scheduler.h"
#include "tune/search/search_space.h"

namespace tune {

struct TaskMetric {
  std::string name;
  std::optional<Mode> mode;  // when the task knows it
};

// A parameter that is active only when another one has one of these values.
struct TaskCondition {
  std::string parameter;
  std::string parent;
  std::vector<std::string> values;
};

// The reports of one trial's training. Steps count from 1.
class Curve {
 public:
  virtual ~Curve() = default;
  // So many steps: then the training is over, or (`is_whole` false) its record is.
  virtual std::uint64_t length() const = 0;
  virtual bool is_whole() const { return true; }
  virtual double seconds(std::uint64_t step) = 0;  // that the step takes; above 0
  // One value a metric, valid until the next call; NaN for those that the step does not report.
  virtual std::span<const double> values(std::uint64_t step) = 0;
  // Whether the step reports that metric, an index into the task's: validation may come every few
  // steps. A training may report NaN, too.
  virtual bool reports(std::uint64_t /*step*/, std::size_t /*metric*/) const { return true; }
};

// Fully trained configurations, by which regret is measured.
struct Reference {
  double optimum = 0;     // the best that was found
  double median = 0;      // of the space
  double training_s = 0;  // the median time of a training
  double regret(double value) const { return (optimum - value) / (optimum - median); }
};

double median_of(std::vector<double> values);  // not empty

// Whether a range holds it, both ends included, but for the rounding of these: YAHPO Gym has
// 0.00010000000000000009 for 1e-4.
bool is_within(double value, double low, double high);

class Task {
 public:
  virtual ~Task() = default;

  virtual const std::string& name() const = 0;  // "lcbench/126025"
  // Every parameter with its range; what is active for some options of another is in these.
  virtual const SearchSpace& space() const = 0;
  // The same with every parameter at the top, named in conditions(): configurations of it are
  // answered as well; what is not active counts for nothing there.
  virtual const SearchSpace& flat_space() const { return space(); }
  virtual std::vector<TaskCondition> conditions() const { return {}; }
  virtual const std::vector<TaskMetric>& metrics() const = 0;
  virtual std::uint64_t steps() const = 0;  // of its longest curve

  // The curves that one sweep has got so far; of a table, each row is given once.
  struct Given {
    std::set<std::size_t> rows;
  };
  // Of one trial. Throws Error (kBadInput) for a configuration that is not of this space.
  virtual std::unique_ptr<Curve> begin(const Config& config, Given& given) const = 0;
  // The number of trials that a sweep can have at most; nothing: any number.
  virtual std::optional<std::uint64_t> most_trials() const { return std::nullopt; }
  // The ends of whole trainings, each as if it were the first of a sweep. `metric`: an index into
  // metrics(). For a surrogate thirty times as fast as beginning a curve for each.
  struct End {
    double value = 0;
    double seconds = 0;  // of the training
  };
  virtual std::vector<End> ends(const std::vector<Config>& configs, std::size_t metric) const;
  // Of configurations that keep the constraints. Throws Error (kBadInput) when there is no such
  // metric, or when none of those that are looked at keeps them. Costs about a second for a
  // surrogate.
  virtual Reference reference(const Objective& objective) const = 0;
};

// Whether values, one a metric, keep the objective's constraints.
bool keeps_constraints(const Objective& objective, const std::vector<TaskMetric>& metrics,
                       std::span<const double> values);
// Of values that whole trainings end with, as far as these keep the constraints, the median; larger
// is better. Throws Error (kBadInput) when none does.
double median_of_kept(const Objective& objective, const std::string& task,
                      std::vector<double> values);
// Of a training that breaks the constraints, or ends with no finite value.
inline constexpr double kWorstEnd = std::numeric_limits<double>::lowest();

// The space but for what functions (sample_from) give. They are their program's and cannot be
// called here; what they give follows from the other values.
SearchSpace without_functions(const SearchSpace& space);

// The index of a metric by its name. Throws Error (kBadInput) that names those there are.
std::size_t find_metric(const Task& task, const std::string& name);

// A sweep's searched parts without an answer in the task, as (key path, why); empty: it fits. Each
// parameter of the task is there, as a domain within its range or as a constant in it, and no other
// is searched. What a function gives may be missing. Of options that hold parameters the sweep may
// have some, by their constants. The flat space does as well.
std::vector<SpaceComplaint> misfits(const SearchSpace& space, const Task& task);

}  // namespace tune
