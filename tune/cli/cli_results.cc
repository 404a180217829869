// tune status, results and best.
#include <algorithm>
#include <cstdio>
#include <filesystem>
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
  return value->is_string() ? value->string() : value->dump();
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

std::vector<Row> table_of(const Analysis& analysis) {
  const Row parameters = parameters_of(analysis.trials());
  Row heads = {"trial_id", "status", "training_iteration"};
  if (!analysis.metric().empty()) heads.push_back(analysis.metric());
  for (const std::string& path : parameters) heads.push_back("config/" + path);
  std::vector<Row> rows = {std::move(heads)};
  for (const TrialSummary& trial : analysis.trials()) {
    const Config config = trial.config();
    const Result last = trial.last_result();
    Row row = {trial.id, status_name(trial.status), cell(last.find("training_iteration"))};
    if (!analysis.metric().empty()) row.push_back(cell(last.find(analysis.metric())));
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
    print_table(table_of(analysis));
  }
  return 0;
}

int best_command(const BestArguments& arguments) {
  const Analysis analysis = Analysis::load(arguments.directory);
  if (arguments.checkpoint) {
    fmt::print("{}\n", analysis.best_checkpoint().path.string());
    return 0;
  }
  const TrialSummary best = analysis.best_trial();
  if (arguments.json) {
    fmt::print("{}\n", to_json(describe(best, analysis.best_result())));
    return 0;
  }
  fmt::print("trial: {}\nconfig: {}\nresult: {}\n", best.id, best.config().dump(),
             analysis.best_result().dump());
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
