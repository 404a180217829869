#include "tune/spec/experiment_spec.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/s3_request.h"
#include "core/store_address.h"
#include "core/strings.h"
#include "schedulers/merit.h"
#include "tune/search/automatic.h"
#include "tune/search/learning.h"
#include "tune/search/where.h"
#include "tune/spec/logger_kinds.h"
#include "tune/spec/objectives.h"
#include "tune/spec/option_reader.h"
#include "tune/spec/pool_value.h"
#include "tune/spec/scheduler_kinds.h"
#include "tune/spec/searcher_setup.h"

namespace tune {

namespace {

constexpr double kMaxSeconds = 1e9;  // 31 years: nanoseconds of it fit into 64 bits
constexpr std::size_t kMaxNameLength = 200;

// Collects the mistakes in one spec.
class SpecCheck {
 public:
  SpecCheck(ExperimentSpec& spec, bool is_function, std::vector<Complaint>& complaints)
      : spec_(spec), options_(spec.options), is_function_(is_function), complaints_(complaints) {}

  void run() {
    check_given();
    check_values();
    check_space();
    check_objectives(options_, complaints_);
    check_objective();
    check_replacing();
    check_stop();
    check_ends();
    check_where();
    check_warm_start();
    check_searcher();
  }
  void check_values() {
    check_name();
    check_storage();
    check_numbers();
    check_resources();
    check_env();
    check_loggers();
  }

 private:
  void check_given();
  void check_name();
  void check_storage();
  void check_object_storage();
  void check_space();
  void check_numbers();
  void check_amounts(const Resources& asked);
  void check_resources();
  void check_env();
  void check_loggers();
  void check_objective();
  void configure_scheduler();
  void check_several(const TrialScheduler& scheduler, const Objective& objective);
  void move_objective_to_experiment(const Objective& objective);
  Objective objective() const;
  void check_replacing();
  void check_stop();
  void check_ends();
  void check_where();
  void check_warm_start();
  void choose_searcher(const SearcherSetup& setup);
  void check_searcher();

  void complain(std::string path, std::string message) {
    complaints_.push_back({.path = std::move(path), .message = std::move(message)});
  }
  void at_least(const char* path, double value, double least) {
    if (value >= least) return;
    complain(path, fmt::format("{} is out of range: it must be at least {}", value, least));
  }
  void check_seconds(const char* path, double value) {
    if (value >= 0 && value <= kMaxSeconds) return;
    complain(path, fmt::format("{} is out of range: it must be from 0 (none) to {:g} seconds",
                               value, kMaxSeconds));
  }

  ExperimentSpec& spec_;
  RunOptions& options_;
  bool is_function_;
  std::vector<Complaint>& complaints_;
  std::optional<double> max_t_;  // a bound the scheduler gives
  bool where_is_wrong_ = false;
};

std::string why_bad_name(const std::string& name) {
  if (name == "." || name == ".." || name == "latest") return "is taken";
  if (name.front() == '-') return "begins with '-'";
  if (name.size() > kMaxNameLength) return fmt::format("is longer than {} bytes", kMaxNameLength);
  for (const char c : name) {
    if (c == '/') return "holds a '/': it names one folder below storage";
    if (std::iscntrl(static_cast<unsigned char>(c))) return "holds a control character";
  }
  return {};
}

void SpecCheck::check_given() {
  spec_.name_given = !options_.name.empty();
  if (spec_.name_given) {
    spec_.name = options_.name;
  } else if (options_.if_exists == IfExists::kResume) {
    complain("name", "going on with an earlier experiment needs its name: give one");
  }
  if (spec_.trainable.empty()) complain("trainable", "no trainable is named: name the one to run");
}

void SpecCheck::check_name() {
  if (options_.name.empty()) return;
  const std::string why = why_bad_name(options_.name);
  if (why.empty()) return;
  complain("name", fmt::format("the name '{}' {}: use letters, digits, '_', '-' and '.'",
                               options_.name, why));
}

void SpecCheck::check_storage() {
  if (options_.storage.empty()) {
    complain("storage", "the folder for results is empty: name one, or leave it out for ./results");
  }
  check_object_storage();
  if (options_.store.empty()) return;
  try {
    parse_store_address(options_.store);
  } catch (const Error& error) {
    complain("store", error.what());
  }
}

// `storage: s3://bucket/prefix` is short for that checkpoint_storage: a journal, tables and logs,
// which are appended to, want a folder.
void SpecCheck::check_object_storage() {
  const bool is_short = is_s3(options_.storage);
  if (is_short && !options_.checkpoint_storage.empty()) {
    complain("checkpoint_storage",
             "storage names an object store already: give the folder for results there");
  }
  const char* key = is_short ? "storage" : "checkpoint_storage";
  if (is_short) {
    options_.checkpoint_storage = std::exchange(options_.storage, RunOptions().storage);
  }
  if (options_.checkpoint_storage.empty()) return;
  try {
    parse_s3_address(options_.checkpoint_storage);
  } catch (const Error& error) {
    complain(key, error.what());
  }
}

void SpecCheck::check_space() {
  if (!options_.config.is_map()) {
    complain("config", "expected a map of parameters, as in {lr: 0.1}");
  }
}

void SpecCheck::check_numbers() {
  if (options_.num_samples < 1 && options_.num_samples != -1) {
    complain("num_samples",
             fmt::format("{} is out of range: it must be at least 1, or -1 for no end",
                         options_.num_samples));
  }
  at_least("max_failures", options_.max_failures, 0);
  at_least("max_concurrent_trials", options_.max_concurrent_trials, 0);
  at_least("checkpoint/frequency", options_.checkpoint.frequency, 0);
  at_least("checkpoint/keep", options_.checkpoint.keep, 1);
  at_least("reporter/max_rows", options_.reporter.max_rows, 1);
  check_seconds("time_budget_s", options_.time_budget_s);
  check_seconds("max_trial_time_s", options_.max_trial_time_s);
  check_seconds("hang_timeout_s", options_.hang_timeout_s);
  check_seconds("reporter/every_s", options_.reporter.every_s);
  check_seconds("store_patience_s", options_.store_patience_s);
  check_seconds("save_grace_s", options_.save_grace_s);
  check_seconds("group_timeout_s", options_.group_timeout_s);
  check_seconds("lease_s", options_.lease_s);
  check_seconds("patience_s", options_.patience_s.value_or(1));
  if (options_.lease_s == 0)
    complain("lease_s", "at 0 s nothing is waited for: it must be above 0");
  if (options_.patience_s == 0) {
    complain("patience_s", "at 0 s nothing is waited for: it must be above 0");
  }
  if (options_.group_timeout_s == 0) {
    complain("group_timeout_s", "at 0 s nothing is waited for: it must be above 0");
  }
  check_seconds("alone_timeout_s", options_.alone_timeout_s);
}

void SpecCheck::check_loggers() {
  const std::vector<std::string> known(kLoggerKinds.begin(), kLoggerKinds.end());
  const OnEnd& on_end = options_.on_end;
  if (!on_end.command.empty() && on_end.command.front().empty()) {
    complain("on_end/command", "the name of the program is empty");
  }
  const bool is_web =
      on_end.webhook.starts_with("http://") || on_end.webhook.starts_with("https://");
  if (!on_end.webhook.empty() && !is_web) {
    complain("on_end/webhook", "expected an address that begins with https:// or http://");
  }
  std::set<std::string> given;
  for (const std::string& name : options_.loggers) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      complain("loggers", fmt::format("there is no logger '{}'{}: there are {}", name,
                                      did_you_mean(name, known), join(known, ", ")));
    } else if (!given.insert(name).second) {
      complain("loggers", fmt::format("'{}' is given twice", name));
    }
  }
}

// Checks each amount by itself; then whether every rank can be given its share.
void SpecCheck::check_amounts(const Resources& asked) {
  const std::size_t before = complaints_.size();
  at_least("resources_per_trial/cpu", asked.cpu.value_or(0), 0);
  at_least("resources_per_trial/gpu", asked.gpu, 0);
  at_least("resources_per_trial/memory", static_cast<double>(asked.memory.bytes()), 0);
  at_least("resources_per_trial/ranks", asked.ranks, 1);
  if (complaints_.size() > before) return;
  try {
    spec_.request = to_request(asked);
  } catch (const Error& error) {
    complain("resources_per_trial", error.what());
  }
}

void SpecCheck::check_resources() {
  check_amounts(options_.resources_per_trial);
  const auto check_total = [&](const char* path, std::optional<double> total, double least,
                               const char* what) {
    if (!total) return;
    if (!(*total >= least) || !std::isfinite(*total)) {
      return complain(path, fmt::format("{} {} is out of range: it must be {}", *total, what,
                                        least > 0 ? "above 0" : "at least 0"));
    }
  };
  check_total("cpus", options_.cpus, 1.0 / kUnit, "CPUs");
  check_total("gpus", options_.gpus, 0, "GPUs");
  check_pool(options_.pool, spec_.request, complaints_);
}

bool is_variable_name(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front()))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c));
  });
}

void SpecCheck::check_env() {
  for (const auto& [name, value] : options_.env) {
    const std::string path = "env/" + name;
    if (!is_variable_name(name)) {
      complain(path,
               fmt::format("'{}' is not a name of an environment variable: use letters, digits "
                           "and '_'",
                           name));
    } else if (name == "CUDA_VISIBLE_DEVICES") {
      complain(path,
               "it is set for each trial to the GPUs it holds: set it for the whole program "
               "instead");
    }
    if (value.find('\0') != std::string::npos) complain(path, "the value holds a zero byte");
  }
}

// ---- Metric and mode ----

Objective SpecCheck::objective() const {
  Objective objective = objective_of(options_);
  objective.seed = options_.seed.value_or(0);
  return objective;
}

void SpecCheck::check_objective() {
  const Config& parameters = options_.scheduler.parameters();
  if (options_.mode && parameters.contains("mode")) {
    complain("mode", fmt::format("is given to the experiment and to the scheduler {}: keep one",
                                 options_.scheduler.name()));
  }
  if (!options_.metric.empty() && parameters.contains("metric")) {
    complain("metric",
             fmt::format("is given to the experiment ('{}') and to the scheduler {}: keep one",
                         options_.metric, options_.scheduler.name()));
  } else {
    configure_scheduler();
  }
}

void SpecCheck::configure_scheduler() {
  try {
    const auto scheduler = options_.scheduler.make();
    scheduler->configure(objective());
    max_t_ = scheduler->max_t();
    const Objective own = scheduler->objective();
    if (own.metric.empty() && own.goals.empty() && !options_.constraints.empty()) {
      complain("constraints",
               "there is nothing to make good under them: give metric or objectives");
    }
    if (needs_merit(own)) check_several(*scheduler, own);
    if (own.goals.empty()) move_objective_to_experiment(own);
  } catch (const Error& error) {
    complain("scheduler", error.what());
  }
}

void SpecCheck::check_several(const TrialScheduler& scheduler, const Objective& objective) {
  if (scheduler.takes_several_objectives()) return;
  const std::string name =
      options_.scheduler.name().empty() ? "it" : "scheduler " + options_.scheduler.name();
  complain("scheduler",
           fmt::format("{} compares trials by one metric alone, and here it would be by {}: take "
                       "asha, hyperband, median_stopping (by its rule mean) or fifo",
                       name, describe(objective)));
}

// The scheduler's metric and mode become the experiment's, where all parts find them.
void SpecCheck::move_objective_to_experiment(const Objective& objective) {
  options_.mode = objective.metric.empty() ? options_.mode.value_or(Mode::kMax) : objective.mode;
  const bool had_metric = !options_.metric.empty();
  if (!had_metric) options_.metric = objective.metric;
  const SchedulerSpec& given = options_.scheduler;
  if (!given.name().empty()) {
    Config rest = given.parameters();
    const bool own_metric = rest.erase("metric");
    const bool own_mode = rest.erase("mode");
    if (own_metric || own_mode) {
      options_.scheduler = any_scheduler_from_config(given.name(), rest);
    }
  } else if (!had_metric && !options_.metric.empty()) {
    // A custom scheduler is made as it was given: it must accept the experiment's metric too.
    given.make()->configure(this->objective());
  }
}

// A scheduler that gives parameters other values.
void SpecCheck::check_replacing() {
  const SchedulerSpec& scheduler = options_.scheduler;
  if (scheduler.changed_parameters().empty()) return;
  const std::string path =
      scheduler.name().empty()
          ? "scheduler"
          : fmt::format("scheduler/{}/{}", scheduler.name(),
                        scheduler.name() == "pb2" ? "hyperparam_bounds" : "hyperparam_mutations");
  if (options_.num_samples == -1) {
    complain("num_samples",
             "-1 has no end, and this scheduler trains all trials at the same time: "
             "give the size of the population");
  }
  if (!options_.config.is_map()) return;
  const std::vector<std::string> known = options_.config.value_paths();
  for (const std::string& changed : scheduler.changed_parameters()) {
    if (std::ranges::find(known, changed) != known.end()) continue;
    complain(path, fmt::format("{} is not in config{}: name parameters of the configuration",
                               changed, did_you_mean(changed, known)));
  }
}

// ---- Ends of trials and of the experiment ----

void SpecCheck::check_stop() {
  for (const auto& [path, bound] : options_.stop) {
    const std::string where = "stop/" + path;
    if (path.empty() || path.front() == '/' || path.back() == '/' ||
        path.find("//") != std::string::npos) {
      complain(where, fmt::format("'{}' is not a key path: write it like loss or loss/test", path));
    }
    if (std::isnan(bound.bound)) complain(where, "nan is never reached: give a number");
    for (std::size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      const std::string above = path.substr(0, slash);
      if (!options_.stop.contains(above)) continue;
      complain(
          where,
          fmt::format("{} cannot be a number and hold other values: keep one of the two", above));
    }
    const bool is_minimised = std::ranges::any_of(goals_of(objective()), [&](const Goal& goal) {
      return path == goal.metric && goal.mode == Mode::kMin;
    });
    if (is_minimised && !bound.at_most) {
      complain(
          where,
          fmt::format("a bare number stops at or above {0:g}, but the mode of {1} is min: write "
                      "{1}: {{\"<=\": {0:g}}} (in C++ {{\"{1}\", tune::at_most({0:g})}})",
                      bound.bound, path));
    }
    spec_.stop.push_back({path, bound.bound, bound.at_most});
  }
}

void SpecCheck::check_ends() {
  const bool has_budget = options_.time_budget_s > 0;
  if (options_.num_samples == -1 && options_.stop.empty() && !has_budget) {
    complain("num_samples", "-1 has no end: give time_budget_s or a stop rule");
  }
  if (is_function_ || !options_.stop.empty() || has_budget || options_.max_trial_time_s > 0) return;
  // A scheduler's limit counts in any attribute, unless the scheduler stops no trial there.
  const Config& parameters = options_.scheduler.parameters();
  const Value* stops = parameters.find("stop_last_trials");
  const bool stops_last =
      stops == nullptr || stops->type() != Value::Type::kBool || stops->boolean();
  if (max_t_ || (parameters.contains("max_t") && stops_last)) return;
  complain("stop",
           "nothing ever ends a trial: give a stop rule such as {training_iteration: 100}, a "
           "scheduler with max_t, max_trial_time_s or time_budget_s");
}

void SpecCheck::check_where() {
  for (const SpaceComplaint& one : where_complaints(options_.where, options_.config)) {
    complain("where/" + one.path, one.message);
    where_is_wrong_ = true;
  }
}

void SpecCheck::check_warm_start() {
  if (options_.warm_start.empty()) return;
  const std::string& searcher = options_.searcher.name();
  if (!learns_from_results(searcher)) {
    complain(
        "warm_start",
        fmt::format("the searcher {} learns nothing from results, these or others: choose auto, "
                    "gp, tpe, cma_es or nsga2, or leave warm_start out",
                    searcher));
  } else if (needs_merit(objective())) {
    complain("warm_start",
             "it reads the values of one metric, and here there are several objectives, or "
             "constraints: leave it out");
  } else if (options_.metric.empty()) {
    complain("warm_start", "without a metric there is nothing to learn: give metric and mode");
  }
}

void SpecCheck::choose_searcher(const SearcherSetup& setup) {
  const bool values_change = !options_.scheduler.changed_parameters().empty();
  search::SearcherChoice choice =
      search::choose_searcher(setup, values_change, !options_.warm_start.empty());
  options_.searcher = std::move(choice.searcher);
  spec_.searcher_choice = std::move(choice.told);
}

void SpecCheck::check_searcher() {
  const bool has_samples = options_.num_samples >= 1 || options_.num_samples == -1;
  if (!options_.config.is_map() || !has_samples || where_is_wrong_) return;
  try {
    const SearcherSetup setup = searcher_setup(spec_, objective());
    if (options_.searcher.name() == "auto") choose_searcher(setup);
    const auto searcher = options_.searcher.make();
    searcher->configure(setup);
    if (needs_merit(setup.objective) && !searcher->takes_several_objectives()) {
      const std::string name =
          options_.searcher.name().empty() ? "it" : "searcher " + options_.searcher.name();
      complain("searcher", fmt::format("{} learns from one metric alone, and here it would be from "
                                       "{}: take auto, gp, tpe, nsga2, random, grid or halton",
                                       name, describe(setup.objective)));
    }
  } catch (const Error& error) {
    const std::string what = error.what();
    const std::string rest = what.substr(std::min(what.find(": ") + 2, what.size()));
    if (what.find("points_to_evaluate") != std::string::npos) {
      complain("points_to_evaluate", what);
    } else if (what.starts_with("searcher ")) {
      complain("searcher", what);
    } else if (what.starts_with("where: ")) {
      complain("where", rest);
    } else {
      complain("config", what.starts_with("config: ") ? rest : what);
    }
  }
}

std::string complaint_line(const std::string& source, const Complaint& complaint) {
  std::string line = place_of(source, complaint);
  for (const std::string& part : {complaint.path, complaint.message}) {
    if (part.empty()) continue;
    line += (line.empty() ? "" : ": ") + part;
  }
  return line;
}

// The place of the key, or of what it lies in; empty: none is known.
std::string known_place(const ExperimentSpec& spec, std::string key) {
  for (;;) {
    if (const auto place = spec.places.find(key); place != spec.places.end()) return place->second;
    const std::size_t slash = key.rfind('/');
    if (slash == std::string::npos) return {};
    key.resize(slash);
  }
}

}  // namespace

std::string place_of(const std::string& source, const Complaint& complaint) {
  if (!complaint.option.empty()) return complaint.option;
  return complaint.line > 0 ? fmt::format("{}:{}", source, complaint.line) : source;
}

std::string with_places(const ExperimentSpec& spec, const std::string& lines) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
    const std::string line = lines.substr(begin, end - begin);
    const std::string place = known_place(spec, line.substr(0, line.find(": ")));
    if (!place.empty()) text += place + ": ";
    text += line;
    begin = end;
  }
  return text;
}

std::string complaint_lines(const std::string& source, const std::vector<Complaint>& all) {
  std::vector<Complaint> ordered = all;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Complaint& a, const Complaint& b) {
    return std::pair(!a.option.empty(), a.line) < std::pair(!b.option.empty(), b.line);
  });
  std::vector<std::string> lines;
  for (const Complaint& complaint : ordered) {
    std::string line = complaint_line(source, complaint);
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  return join(lines, "\n");
}

void throw_complaints(const std::string& source, const std::vector<Complaint>& all) {
  throw Error(ErrorCode::kBadInput, complaint_lines(source, all));
}

void check_values(const RunOptions& options, std::vector<Complaint>& complaints) {
  ExperimentSpec spec;
  spec.options = options;
  SpecCheck(spec, false, complaints).check_values();
}

ExperimentSpec make_spec(RunOptions options, std::string trainable, bool is_function,
                         std::vector<Complaint>& complaints) {
  ExperimentSpec spec;
  spec.trainable = std::move(trainable);
  spec.options = std::move(options);
  SpecCheck(spec, is_function, complaints).run();
  return spec;
}

}  // namespace tune
