// tune simulate.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/strings.h"
#include "schedulers/merit.h"
#include "tune/cli/cli_commands.h"
#include "tune/results/warm_start.h"
#include "tune/simulate/dominated_share.h"
#include "tune/simulate/task_files.h"
#include "tune/simulate/virtual_sweep.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/overrides.h"
#include "tune/spec/yaml_spec.h"

namespace tune {

namespace {

constexpr std::array<double, 3> kFractions = {0.25, 0.5, 1.0};
constexpr double kWorstRegret = 1.5;  // one bad start must not outweigh all other runs

Duration cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kBadInput, why);
}

// ---- What is played

using Tasks = std::vector<std::unique_ptr<Task>>;

// Those that a name means: the task itself, or all of its folder.
Tasks chosen(Tasks all, const std::vector<std::string>& names) {
  if (names.empty()) return all;
  Tasks found;
  std::vector<std::string> known;
  for (const auto& task : all) known.push_back(task->name());
  for (const std::string& name : names) {
    const std::size_t before = found.size();
    for (std::unique_ptr<Task>& task : all) {
      if (!task || (task->name() != name && !task->name().starts_with(name + "/"))) continue;
      found.push_back(std::move(task));
    }
    if (found.size() == before) {
      const std::string near = nearest(name, known);
      refuse(fmt::format("--task {}: there is no such task, or it is named twice{}", name,
                         near.empty() ? "" : fmt::format(": did you mean {}?", near)));
    }
  }
  return found;
}

Tasks tasks_for(const SimulateArguments& arguments) {
  if (arguments.tasks.empty() && arguments.from.empty()) {
    refuse(
        "simulating: on what? give --tasks DIR, a folder of surrogates and tables, or --from "
        "RESULTS, an earlier experiment");
  }
  if (!arguments.tasks.empty()) return chosen(tasks_in(arguments.tasks), arguments.names);
  Tasks tasks;
  tasks.push_back(task_of_experiment(arguments.from));
  return chosen(std::move(tasks), arguments.names);
}

// The one asked for, else the task's first of which it knows what is better.
std::string default_metric(const Task& task, const std::string& asked) {
  if (!asked.empty()) return task.metrics()[find_metric(task, asked)].name;
  const auto known = std::find_if(
      task.metrics().begin(), task.metrics().end(),
      [](const TaskMetric& metric) { return metric.mode.has_value() && metric.name != "time"; });
  return known == task.metrics().end() ? std::string() : known->name;
}

PlayedTask played_on(const Task& task, const std::string& metric, double budget_s) {
  std::map<std::string, Mode> modes;
  for (const auto& [name, mode] : task.metrics()) {
    if (mode) modes[name] = *mode;
  }
  return {without_functions(task.space()), default_metric(task, metric), std::move(modes),
          budget_s};
}

// Found once for each metric of a task and constraints on it, unless they are given: a file with a
// map of tasks, each with a map of metrics, for sweeps without constraints.
class References {
 public:
  explicit References(const std::string& file) : file_(file) {
    if (!file.empty()) given_ = Config(parse_json(read_file(file), file));
  }
  // One a goal.
  std::vector<Reference> of(const Task& task, const Objective& objective) {
    std::vector<Reference> found;
    for (const Goal& goal : goals_of(objective)) {
      Objective one{goal.metric, goal.mode};
      one.constraints = objective.constraints;
      found.push_back(of_one(task, one));
    }
    return found;
  }

 private:
  const Reference& of_one(const Task& task, const Objective& objective) {
    const auto key = std::pair(&task, tune::describe(objective));
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    const std::string path = task.name() + "/" + objective.metric;
    if (!objective.constraints.empty() || !given_.contains(path)) {
      return known_[key] = task.reference(objective);
    }
    try {
      return known_[key] = {given_.get<double>(path + "/optimum"),
                            given_.get<double>(path + "/median"),
                            given_.get<double>(path + "/training_s")};
    } catch (const Error& error) {
      refuse(fmt::format("reading {}: {}", file_, error.what()));
    }
  }

  std::string file_;
  Config given_;
  std::map<std::pair<const Task*, std::string>, Reference> known_;
};

ExperimentSpec read_sweep(const std::string& sweep, const SimulateArguments& arguments,
                          const Task& task, double budget_s) {
  SweepOptions options;
  for (const std::string& set : arguments.sets) {
    parse_set(set, options.overrides, options.complaints);
  }
  options.played = played_on(task, arguments.metric, budget_s);
  ExperimentSpec spec = spec_from_yaml_file(sweep, std::move(options));
  if (!spec.options.seed) spec.options.seed = 0;
  const Objective objective = objective_of(spec);
  if (goals_of(objective).empty()) {
    refuse(fmt::format("{}: metric: is missing, and {} does not say which: name one of its metrics",
                       sweep, task.name()));
  }
  for (const std::string& name : metrics_of(objective)) find_metric(task, name);
  std::vector<Complaint> complaints;
  for (const SpaceComplaint& misfit : misfits(spec.options.config, task)) {
    complaints.push_back({.path = "config/" + misfit.path, .message = misfit.message});
  }
  if (!complaints.empty()) throw_complaints(sweep, complaints);
  read_warm_start(spec);
  return spec;
}

// ---- What came out

struct Played {
  std::string sweep;
  std::string task;
  std::uint64_t seed = 0;
  VirtualRun run;
  std::vector<Reference> references;  // one a goal
  double budget_s = 0;                // that fractions are taken of
  std::vector<double> regrets;

  void judge() {
    for (const double fraction : kFractions) {
      const double at = fraction * budget_s;
      regrets.push_back(references.size() > 1 ? regret_of_several(at) : regret_of_one(at));
    }
  }
  double regret_of_one(double at) const {
    const double value = run.best_at(at).value_or(references[0].median);
    return std::min(references[0].regret(value), kWorstRegret);
  }
  // Of the box between the optima and the medians what no trial dominates.
  double regret_of_several(double at) const {
    std::vector<std::vector<double>> points = run.points_at(at);
    for (std::vector<double>& point : points) {
      for (std::size_t i = 0; i < point.size(); ++i) point[i] = references[i].regret(point[i]);
    }
    return 1 - dominated_share(std::move(points));
  }
  // What regret is made of.
  void describe_values(Value& line) const {
    if (references.size() == 1) {
      Value::List best;
      for (const VirtualRun::Best& one : run.best) {
        best.push_back(list({one.seconds, one.trials, one.value}));
      }
      line.set("optimum", references[0].optimum);
      line.set("median", references[0].median);
      line.set("best", Value::make_list(std::move(best)));
      return;
    }
    Value::List optima, medians, points;
    for (const Reference& one : references) {
      optima.emplace_back(one.optimum);
      medians.emplace_back(one.median);
    }
    for (const VirtualRun::Point& one : run.points) {
      points.push_back(list({one.seconds, one.trials, one.trial.value, Value(one.values)}));
    }
    line.set("optimum", Value::make_list(std::move(optima)));
    line.set("median", Value::make_list(std::move(medians)));
    line.set("points", Value::make_list(std::move(points)));
  }
  Value describe(const SimulateArguments& arguments) const {
    Value last_steps = Value::make_map();
    for (const auto& [step, trials] : run.last_steps) last_steps.set(std::to_string(step), trials);
    const double trials = static_cast<double>(std::max<std::uint64_t>(run.trials, 1));
    Value line{{"sweep", sweep},
               {"task", task},
               {"seed", seed},
               {"workers", arguments.workers},
               {"trainings", arguments.trainings},
               {"start_cost", arguments.start_cost},
               {"regret", Value(regrets)},
               {"trials", run.trials},
               {"launches", run.launches},
               {"steps", run.steps},
               {"seconds", run.seconds},
               {"budget_s", budget_s},
               {"last_steps", last_steps},
               {"ends_of_record", run.ends_of_record}};
    describe_values(line);
    line.set("suggestion_s", seconds(run.deciding) / trials);
    return line;
  }
};

struct Sums {
  std::uint64_t runs = 0;
  std::uint64_t ends_of_record = 0;
  double trials = 0;
  double steps = 0;
  double hours = 0;
  std::array<double, kFractions.size()> regrets{};
  std::map<std::uint64_t, double> last_steps;

  void add(const Played& played) {
    ++runs;
    ends_of_record += played.run.ends_of_record;
    trials += static_cast<double>(played.run.trials);
    steps += static_cast<double>(played.run.steps);
    hours += played.run.seconds / 3600;
    for (std::size_t i = 0; i < regrets.size(); ++i) regrets[i] += played.regrets[i];
    for (const auto& [step, count] : played.run.last_steps) {
      last_steps[step] += static_cast<double>(count);
    }
  }
};

// The number of trials that came to a step and no farther: the steps with the most, in order.
std::string rungs(const Sums& sums) {
  constexpr std::size_t kShown = 8;
  std::vector<std::pair<double, std::uint64_t>> most;
  for (const auto& [step, count] : sums.last_steps) most.emplace_back(-count, step);
  std::sort(most.begin(), most.end());
  if (most.size() > kShown) most.resize(kShown);
  std::vector<std::string> parts;
  for (const auto& [step, count] : sums.last_steps) {
    if (std::find(most.begin(), most.end(), std::pair(-count, step)) == most.end()) continue;
    parts.push_back(fmt::format("{}: {:.3g}", step, count / static_cast<double>(sums.runs)));
  }
  return join(parts, ", ");
}

std::string regret_text(double regret) {
  return std::isfinite(regret) ? fmt::format("{:.3f}", regret) : "-";
}

void print_table(const std::vector<std::string>& sweeps, const std::map<std::string, Sums>& sums) {
  std::size_t width = 5;
  for (const std::string& sweep : sweeps) width = std::max(width, sweep.size());
  fmt::print("{:<{}}  {:>5}  {:>8}  {:>9}  {:>9}  {:>6}  {:>6}  {:>6}  {}\n", "sweep", width,
             "runs", "trials", "steps", "hours", "25 %", "50 %", "100 %",
             "trials that ended at a step");
  for (const std::string& sweep : sweeps) {
    const Sums& one = sums.at(sweep);
    const auto runs = static_cast<double>(one.runs);
    fmt::print("{:<{}}  {:>5}  {:>8.1f}  {:>9.1f}  {:>9.4g}  {:>6}  {:>6}  {:>6}  {}\n", sweep,
               width, one.runs, one.trials / runs, one.steps / runs, one.hours / runs,
               regret_text(one.regrets[0] / runs), regret_text(one.regrets[1] / runs),
               regret_text(one.regrets[2] / runs), rungs(one));
  }
}

void tell_ends_of_record(const std::vector<std::string>& sweeps,
                         const std::map<std::string, Sums>& sums) {
  for (const std::string& sweep : sweeps) {
    const Sums& one = sums.at(sweep);
    if (one.ends_of_record == 0) continue;
    fmt::print(
        stderr,
        "{}: {:.3g} trials a run would have gone on, but were recorded no farther: they ended "
        "with their last value\n",
        sweep, static_cast<double>(one.ends_of_record) / static_cast<double>(one.runs));
  }
}

}  // namespace

int simulate_command(const SimulateArguments& arguments) {
  const Tasks tasks = tasks_for(arguments);
  References references(arguments.references);
  std::map<std::string, Sums> sums;
  VirtualOptions options{arguments.workers, arguments.start_cost, cpu_time};
  for (const auto& task : tasks) {
    for (const std::string& sweep : arguments.sweeps) {
      // Its metrics say which references, whose time is the budget.
      ExperimentSpec spec = read_sweep(sweep, arguments, *task, arguments.trainings > 0 ? 1 : 0);
      const std::vector<Reference> found = references.of(*task, objective_of(spec));
      const double budget_s = arguments.trainings * found[0].training_s / arguments.workers;
      if (arguments.trainings > 0) spec = read_sweep(sweep, arguments, *task, budget_s);
      const std::uint64_t first_seed = *spec.options.seed;
      for (std::uint32_t i = 0; i < arguments.seeds; ++i) {
        spec.options.seed = first_seed + i;
        Played played{sweep, task->name(), first_seed + i, {}, found, {}, {}};
        played.run = play(spec, *task, options);
        const double own_budget_s = spec.options.time_budget_s;
        played.budget_s = own_budget_s > 0 ? own_budget_s : played.run.seconds;
        played.judge();
        sums[sweep].add(played);
        if (!arguments.json) continue;
        fmt::print("{}\n", to_json(played.describe(arguments)));
        std::fflush(stdout);
      }
    }
  }
  if (!arguments.json) print_table(arguments.sweeps, sums);
  tell_ends_of_record(arguments.sweeps, sums);
  return 0;
}

}  // namespace tune
