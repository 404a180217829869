// tune status, results and best.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"
#include "tune/cli/cli_commands.h"
#include "tune/cli/status.h"
#include "tune/results/analysis.h"
#include "tune/search/search_space.h"
#include "tune/show/status_block.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

using Row = std::vector<std::string>;

Value describe(const TrialSummary& trial, const Result& result) {
  return Value{{"trial_id", trial.id},
               {"status", status_name(trial.status)},
               {"config", trial.config()},
               {"result", result}};
}

std::string cell(const Value* value) {
  if (value == nullptr) return {};
  return one_line(value->is_string() ? value->string() : value->dump());
}

// The paths of the parameters of all trials, in the order they first appear.
Row parameters_of(const std::vector<TrialSummary>& trials) {
  Row paths;
  for (const TrialSummary& trial : trials) {
    const Config config = trial.config();
    for (const auto& [path, value] : config.leaves()) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  }
  return paths;
}

// The metrics that decide: those to be made good, then those that constraints are about.
Row metrics_of(const Analysis& analysis) {
  Row metrics;
  const auto add = [&](const std::string& metric) {
    const bool is_new = std::find(metrics.begin(), metrics.end(), metric) == metrics.end();
    if (!metric.empty() && is_new) metrics.push_back(metric);
  };
  add(analysis.metric());
  for (const Goal& goal : analysis.objectives()) add(goal.metric);
  for (const Constraint& constraint : analysis.constraints()) add(constraint.metric);
  return metrics;
}

// "*" for those of Pareto's front, where there are several objectives.
std::set<std::string> front_of(const Analysis& analysis) try {
  std::set<std::string> ids;
  if (analysis.objectives().empty()) return ids;
  for (const TrialSummary& trial : analysis.pareto()) ids.insert(trial.id);
  return ids;
} catch (const Error&) {  // none is eligible yet
  return {};
}

// The last result may have none.
std::string metric_cell(const TrialSummary& trial, const Result& last, const std::string& metric) {
  const Value* value = last.find(metric);
  if (value != nullptr) return cell(value);
  const std::optional<double> newest = trial.newest(metric);
  return newest ? Value(*newest).dump() : "";
}

std::vector<Row> table_of(const Analysis& analysis, const std::vector<TrialSummary>& trials,
                          bool marks_front) {
  const Row parameters = parameters_of(trials);
  const Row metrics = metrics_of(analysis);
  const std::set<std::string> front = marks_front ? front_of(analysis) : std::set<std::string>();
  Row heads = {"trial_id", "status", "training_iteration"};
  if (!front.empty()) heads.push_back("pareto");
  heads.insert(heads.end(), metrics.begin(), metrics.end());
  for (const std::string& path : parameters) heads.push_back("config/" + path);
  std::vector<Row> rows = {std::move(heads)};
  for (const TrialSummary& trial : trials) {
    const Config config = trial.config();
    const Result last = trial.last_result();
    Row row = {trial.id, status_name(trial.status), cell(last.find("training_iteration"))};
    if (!front.empty()) row.push_back(front.contains(trial.id) ? "*" : "");
    for (const std::string& metric : metrics) row.push_back(metric_cell(trial, last, metric));
    for (const std::string& path : parameters) row.push_back(cell(config.find(path)));
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

void check_place(const fs::path& csv) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kBadInput, fmt::format("--csv {}: {}", csv.string(), why));
  };
  const fs::path folder = fs::absolute(csv).parent_path();
  if (!fs::is_directory(folder)) refuse(fmt::format("there is no folder {}", folder.string()));
  if (fs::is_directory(csv)) refuse("it is a folder: name a file");
}

}  // namespace

int status_command(const std::string& directory) {
  return show_status(directory);
}

int results_command(const ResultsArguments& arguments) {
  const Analysis analysis = Analysis::load(arguments.directory);
  if (arguments.csv == "-") {
    fmt::print("{}", analysis.to_csv());
  } else if (!arguments.csv.empty()) {
    check_place(arguments.csv);
    analysis.write_csv(arguments.csv);
  } else if (arguments.json) {
    for (const TrialSummary& trial : analysis.trials()) {
      fmt::print("{}\n", to_json(describe(trial, trial.last_result())));
    }
  } else {
    print_table(table_of(analysis, analysis.trials(), true));
  }
  return 0;
}

namespace {

// Nothing to say when constraints are kept.
void tell_of_constraints(const Analysis& analysis, const TrialSummary& best) {
  if (analysis.constraints().empty() || analysis.keeps_constraints(best)) return;
  fmt::print(stderr, "no trial keeps the constraints: this is what breaks them least\n");
}

// With several objectives there is a front in place of one that is best.
int best_of_several(const Analysis& analysis, const BestArguments& arguments) {
  if (!arguments.mode.empty() || arguments.scope != "last") {
    throw Error(ErrorCode::kBadInput,
                "--mode and --scope: there are several objectives: name one of them by --metric");
  }
  if (arguments.checkpoint) {
    throw Error(ErrorCode::kBadInput,
                "--checkpoint: there are several objectives, and no trial is the best by all of "
                "them: take one of those that tune best lists, and its newest checkpoint, or name "
                "one objective by --metric");
  }
  const std::vector<TrialSummary> front = analysis.pareto();
  tell_of_constraints(analysis, front.front());
  if (!arguments.json) {
    print_table(table_of(analysis, front, false));
    return 0;
  }
  for (const TrialSummary& trial : front) {
    fmt::print("{}\n", to_json(describe(trial, trial.last_result())));
  }
  return 0;
}

}  // namespace

int best_command(const BestArguments& arguments) {
  const Analysis analysis = Analysis::load(arguments.directory);
  const std::string& metric = arguments.metric;
  if (!analysis.objectives().empty() && metric.empty()) {
    return best_of_several(analysis, arguments);
  }
  std::optional<Mode> mode;
  if (!arguments.mode.empty()) mode = arguments.mode == "min" ? Mode::kMin : Mode::kMax;
  const Scope scope = scope_from_name(arguments.scope).value_or(Scope::kLast);
  if (arguments.checkpoint) {
    fmt::print("{}\n", analysis.best_checkpoint(metric, mode, scope).path.string());
    return 0;
  }
  const TrialSummary best = analysis.best_trial(metric, mode, scope);
  const Result result = analysis.best_result(metric, mode, scope);
  tell_of_constraints(analysis, best);
  if (arguments.json) {
    fmt::print("{}\n", to_json(describe(best, result)));
    return 0;
  }
  fmt::print("trial: {}\nconfig: {}\nresult: {}\n", best.id, best.config().dump(), result.dump());
  const std::string& judged_by = metric.empty() ? analysis.metric() : metric;
  const std::optional<double> newest = best.newest(judged_by);
  if (newest && result.find(judged_by) == nullptr) {
    fmt::print("{}, as it was last reported: {}\n", judged_by, Value(*newest).dump());
  }
  return 0;
}

namespace {

void print_json(const std::vector<ScheduleEntry>& schedule) {
  for (const ScheduleEntry& entry : schedule) {
    fmt::print("{}\n", to_json(Value{{"iteration", entry.iteration},
                                     {"config", entry.config},
                                     {"trial_id", entry.trial},
                                     {"trial_iteration", entry.trial_iteration},
                                     {"reason", entry.reason}}));
  }
}

// The lines of a sweep that plays it again.
void print_yaml(const std::vector<ScheduleEntry>& schedule) {
  fmt::print("config: {}\nnum_samples: 1\nscheduler:\n  pbt_replay:\n    schedule:\n",
             to_json(SearchSpace(Value(schedule.front().config)).describe()));
  for (const ScheduleEntry& entry : schedule) {
    fmt::print("      # trial {} from its iteration {}{}{}\n", entry.trial, entry.trial_iteration,
               entry.reason.empty() ? "" : ": ", one_line(entry.reason));
    fmt::print("      - {{iteration: {}, config: {}}}\n", entry.iteration, to_json(entry.config));
  }
}

}  // namespace

int schedule_command(const ScheduleArguments& arguments) {
  const std::string trial = find_trial(arguments.directory, arguments.trial).filename().string();
  const std::vector<ScheduleEntry> schedule = read_schedule(arguments.directory, trial);
  arguments.json ? print_json(schedule) : print_yaml(schedule);
  return 0;
}

}  // namespace tune
