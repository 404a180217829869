#include "tune/export/optuna.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "tune/export/exporter.h"
#include "tune/export/optuna_space.h"
#include "tune/results/analysis.h"
#include "tune/results/event_lines.h"
#include "tune/results/experiment_head.h"
#include "tune/results/result_lines.h"
#include "tune/results/result_scan.h"
#include "tune/results/trial_folders.h"
#include "tune/results/trial_stories.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWorker = "tune-export";  // tells our files from others
constexpr std::size_t kTrialsAtOnce = 4096;     // of which the text is held in memory
constexpr unsigned kMaxThreads = 8;

// Operations, directions and states of Optuna.
enum Operation { kCreateStudy = 0, kSetStudySystemAttribute = 3, kCreateTrial = 4 };
constexpr int kMinimize = 1, kMaximize = 2;
enum class State { kRunning = 0, kComplete = 1, kPruned = 2, kFail = 3, kWaiting = 4 };

// As Python's json reads and writes them.
void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "Infinity" : "-Infinity";
  } else {
    append_json_number(out, value);
  }
}

// "2026-11-22T12:00:00.500000+00:00"
std::string date(double unix_seconds) {
  const double whole = std::floor(unix_seconds);
  const auto seconds = static_cast<std::time_t>(whole);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  const auto micros = static_cast<int>(std::lround((unix_seconds - whole) * 1e6));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     std::min(micros, 999'999));
}

// The metrics of a study: one, or those of several objectives.
struct Goals {
  std::vector<std::string> metrics;
  std::vector<int> directions;
};

Goals goals_of(const ExperimentHead& head) {
  const auto direction = [](bool is_min) { return is_min ? kMinimize : kMaximize; };
  if (!head.metric.empty()) return {{head.metric}, {direction(head.mode == Mode::kMin)}};
  Goals goals;
  const Value* objectives = head.spec.find("objectives");
  if (objectives == nullptr || !objectives->is_list()) return goals;
  for (const Value& one : objectives->list()) {
    goals.metrics.push_back(one.get_or("metric", ""));
    goals.directions.push_back(direction(one.get_or("mode", "max") == "min"));
  }
  return goals;
}

// A trial as its files tell.
struct TrialText {
  OptunaParams params;
  std::string intermediate;  // "\"1\":0.5,\"2\":0.75"; of several objectives Optuna has none
  std::vector<std::optional<double>> last;  // of each metric
  double first_time = 0, last_time = 0;  // of its results
  std::string problem;
};

void append_intermediate(std::string& text, std::size_t iteration, double value) {
  if (!text.empty()) text += ',';
  text += '"';
  text += std::to_string(iteration);
  text += "\":";
  append_number(text, value);
}

TrialText read_trial(const fs::path& directory, const OptunaSpace& space,
                     const std::vector<std::string>& metrics) {
  TrialText trial;
  trial.last.resize(metrics.size());
  try {
    const fs::path params = directory / "params.json";
    trial.params = space.describe(config_from_json(read_file(params), params.string()));
    const fs::path results = directory / "result.json";
    const std::string results_text = results.string();
    for_each_line(results, [&](std::string_view line, std::size_t iteration) {
      bool has_value = false;
      scan_numbers(line, results_text, [&](std::string_view path, double number) {
        if (path == "timestamp") trial.last_time = number;
        const auto metric = std::find(metrics.begin(), metrics.end(), path);
        if (metric == metrics.end()) return;
        trial.last[static_cast<std::size_t>(metric - metrics.begin())] = number;
        has_value = true;
      });
      if (trial.first_time == 0) trial.first_time = trial.last_time;
      if (!has_value || metrics.size() > 1) return;
      append_intermediate(trial.intermediate, iteration, *trial.last.front());
    });
  } catch (const Error& error) {
    trial.problem = error.what();
  }
  return trial;
}

// A complete trial of Optuna has a value of each metric.
bool has_values(const TrialText& trial) {
  return std::all_of(trial.last.begin(), trial.last.end(),
                     [](const auto& value) { return value && !std::isnan(*value); });
}

bool has_begun(const TrialText& trial) {
  return std::any_of(trial.last.begin(), trial.last.end(),
                     [](const auto& value) { return value.has_value(); });
}

State state_of(const TrialStory& story, const TrialText& trial) {
  switch (story.status) {
    case TrialStatus::kTerminated:
      if (story.was_stopped) return State::kPruned;
      return has_values(trial) ? State::kComplete : State::kFail;
    case TrialStatus::kError:
      return State::kFail;
    case TrialStatus::kPending:
      return story.started > 0 || has_begun(trial) ? State::kRunning : State::kWaiting;
    default:
      return State::kRunning;
  }
}

// ",\"value\":0.5,\"values\":null", or the values of several objectives.
void append_values(std::string& line, const TrialText& trial, bool has_value) {
  const bool is_one = trial.last.size() == 1;
  line += ",\"value\":";
  has_value&& is_one ? append_number(line, *trial.last.front()) : void(line += "null");
  line += ",\"values\":";
  if (!has_value || is_one) {
    line += "null";
    return;
  }
  for (std::size_t i = 0; i < trial.last.size(); ++i) {
    line += i == 0 ? '[' : ',';
    append_number(line, *trial.last[i]);
  }
  line += ']';
}

std::string line_of(const std::string& id, const TrialStory& story, TrialText& trial) {
  const State state = state_of(story, trial);
  const bool is_over = state != State::kRunning && state != State::kWaiting;
  const bool has_value =
      (state == State::kComplete || state == State::kPruned) && has_values(trial);
  const double started = story.started > 0 ? story.started : trial.first_time;
  std::string line =
      fmt::format("{{\"op_code\":{},\"worker_id\":\"{}\",\"study_id\":0,\"state\":{}",
                  static_cast<int>(kCreateTrial), kWorker, static_cast<int>(state));
  append_values(line, trial, has_value);
  line += ",\"datetime_start\":";
  line += state == State::kWaiting ? "null" : json_text(date(started));
  if (is_over) {
    const double ended = story.ended > 0 ? story.ended : trial.last_time;
    line += ",\"datetime_complete\":" + json_text(date(std::max(started, ended)));
  }
  line += ",\"distributions\":" + trial.params.distributions;
  line += ",\"params\":" + trial.params.params;
  line += ",\"user_attrs\":{\"trial_id\":" + json_text(id);
  line += fmt::format(",\"status\":\"{}\"", status_name(story.status));
  const bool is_nan = trial.last.size() == 1 && std::isnan(trial.last.front().value_or(0));
  if (is_nan) line += ",\"last_value\":\"nan\"";
  for (const std::string& attribute : trial.params.attributes) line += "," + attribute;
  line += "},\"system_attrs\":{},\"intermediate_values\":{" + trial.intermediate + "}}\n";
  return line;
}

// ---- The experiment -----------------------------------------------------------------------------

// Calls `work` for 0 to count - 1, in several threads.
void in_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::future<void>> helpers;
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxThreads);
  for (unsigned i = 1; i < cores; ++i) helpers.push_back(std::async(std::launch::async, run));
  run();
  for (std::future<void>& helper : helpers) helper.get();
}

// Adds the events of so many lines, which are parsed in several threads: one alone takes longer for
// them than all others for the trials.
class StoryReader {
 public:
  explicit StoryReader(const fs::path& experiment) : file_(experiment / kEventsFile) {
    for_each_line(file_, [&](std::string_view line, std::size_t) {
      lines_.emplace_back(line);
      if (lines_.size() == kLinesAtOnce) add_lines();
    });
    add_lines();
    added_.get();
  }
  TrialStories stories;
  bool are_there = false;  // events

 private:
  static constexpr std::size_t kLinesAtOnce = 16'384, kPiece = 256;

  void add_lines() {
    static const std::vector<std::string_view> kAsked = {"attempt_started", "attempt_ended",
                                                         "trial_ended",     "failure",
                                                         "driver_started",  "experiment_ended"};
    std::vector<std::optional<EventLine>> events(lines_.size());
    in_threads((lines_.size() + kPiece - 1) / kPiece, [&](std::size_t piece) {
      const std::size_t end = std::min(lines_.size(), (piece + 1) * kPiece);
      for (std::size_t i = piece * kPiece; i < end; ++i) {
        auto fields = event_in_line(lines_[i], {file_, before_ + i + 1}, kAsked);
        if (fields) events[i] = event_of_fields(std::move(*fields));
      }
    });
    before_ += lines_.size();
    lines_.clear();
    if (added_.valid()) added_.get();
    added_ = std::async(std::launch::async, [this, events = std::move(events)] {
      for (const auto& event : events) {
        if (!event) continue;
        are_there = true;
        stories.add(*event);
      }
    });
  }

  fs::path file_;
  std::vector<std::string> lines_;
  std::size_t before_ = 0;   // lines that are parsed
  std::future<void> added_;  // the last of them, while the next are read
};

// Of builds that wrote no events: from results.csv, if it can be read.
std::map<std::string, TrialStatus> statuses_without_events(const fs::path& experiment) {
  std::map<std::string, TrialStatus> statuses;
  try {
    for (const TrialSummary& trial : Analysis::load(experiment).trials()) {
      statuses[trial.id] = trial.status;
    }
  } catch (const Error&) {  // of a damaged trial, which is told by its own
  }
  return statuses;
}

std::string header_of(const ExperimentHead& head, const Goals& goals) {
  std::vector<std::string> names;
  for (const std::string& metric : goals.metrics) names.push_back(json_text(metric));
  return fmt::format(
      "{{\"op_code\":{},\"worker_id\":\"{}\",\"study_name\":{},\"directions\":[{}]}}\n"
      "{{\"op_code\":{},\"worker_id\":\"{}\",\"study_id\":0,\"system_attr\":"
      "{{\"study:metric_names\":[{}]}}}}\n",
      static_cast<int>(kCreateStudy), kWorker, json_text(head.name),
      fmt::join(goals.directions, ","), static_cast<int>(kSetStudySystemAttribute), kWorker,
      fmt::join(names, ","));
}

void check_place(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return;
  std::string line;
  if (fs::is_regular_file(file, ignored)) std::getline(std::ifstream(file), line);
  if (line.find(fmt::format("\"worker_id\":\"{}\"", kWorker)) != line.npos) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("--optuna {}: it is there, and not of an earlier export: name another "
                          "file",
                          file.string()));
}

}  // namespace

OptunaExported export_to_optuna(const fs::path& experiment, const fs::path& file) {
  const ExperimentHead head = checked_head(experiment);
  const Goals goals = goals_of(head);
  if (goals.metrics.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("exporting {}: it has no metric, which a study of Optuna needs",
                            experiment.string()));
  }
  check_place(file);
  const OptunaSpace space(space_of(head));
  auto listed = std::async(std::launch::async, [&] { return list_trial_folders(experiment); });
  const StoryReader told(experiment);
  std::map<std::string, TrialStatus> statuses;
  if (!told.are_there) statuses = statuses_without_events(experiment);
  const TrialFolders folders = listed.get();
  // The line of a trial, and its problem.
  const auto line_at = [&](std::size_t i) {
    const std::string id = fmt::format("{}{:05}", folders.prefix, folders.numbers[i]);
    TrialText trial = read_trial(experiment / id, space, goals.metrics);
    const TrialStory* known = told.stories.find(folders.numbers[i]);
    TrialStory story = known == nullptr ? TrialStory() : *known;
    if (const auto one = statuses.find(id); one != statuses.end()) story.status = one->second;
    return std::pair(line_of(id, story, trial), std::move(trial.problem));
  };
  OptunaExported exported;
  exported.trials = folders.numbers.size();
  ReplacedFile out(file);
  out.write(header_of(head, goals));
  std::future<void> written;  // the trials before, while the next are read
  for (std::size_t from = 0; from < folders.numbers.size(); from += kTrialsAtOnce) {
    std::vector<std::pair<std::string, std::string>> lines(
        std::min(kTrialsAtOnce, folders.numbers.size() - from));
    in_threads(lines.size(), [&](std::size_t i) { lines[i] = line_at(from + i); });
    for (const auto& [line, problem] : lines) {
      if (problem.empty() || exported.problems.size() >= kMaxProblems) continue;
      exported.problems.push_back(problem);
    }
    if (written.valid()) written.get();
    written = std::async(std::launch::async, [&out, lines = std::move(lines)] {
      std::string text;
      for (const auto& [line, problem] : lines) text += line;
      out.write(text);
    });
  }
  if (written.valid()) written.get();
  out.commit();
  return exported;
}

}  // namespace tune
