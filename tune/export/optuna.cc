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
enum Direction { kMinimize = 1, kMaximize = 2 };
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

// A trial as its files tell.
struct TrialText {
  OptunaParams params;
  std::string intermediate;  // "\"1\":0.5,\"2\":0.75"
  std::optional<double> last;
  double first_time = 0, last_time = 0;  // of its results
  std::string problem;
};

TrialText read_trial(const fs::path& directory, const OptunaSpace& space,
                     const std::string& metric) {
  TrialText trial;
  try {
    const fs::path params = directory / "params.json";
    trial.params = space.describe(config_from_json(read_file(params), params.string()));
    const fs::path results = directory / "result.json";
    for_each_line(results, [&](std::string_view line, std::size_t iteration) {
      std::optional<double> value;
      scan_numbers(line, results.string(), [&](std::string_view path, double number) {
        if (path == metric) value = number;
        if (path == "timestamp") trial.last_time = number;
      });
      if (trial.first_time == 0) trial.first_time = trial.last_time;
      if (!value) return;
      trial.last = value;
      if (!trial.intermediate.empty()) trial.intermediate += ',';
      trial.intermediate += '"';
      trial.intermediate += std::to_string(iteration);
      trial.intermediate += "\":";
      append_number(trial.intermediate, *value);
    });
  } catch (const Error& error) {
    trial.problem = error.what();
  }
  return trial;
}

State state_of(const TrialStory& story, const std::optional<double>& last) {
  switch (story.status) {
    case TrialStatus::kTerminated:
      if (story.was_stopped) return State::kPruned;
      return last && !std::isnan(*last) ? State::kComplete : State::kFail;
    case TrialStatus::kError:
      return State::kFail;
    case TrialStatus::kPending:
      return story.started > 0 || last ? State::kRunning : State::kWaiting;
    default:
      return State::kRunning;
  }
}

std::string line_of(const std::string& id, const TrialStory& story, TrialText& trial) {
  const State state = state_of(story, trial.last);
  const bool is_over = state != State::kRunning && state != State::kWaiting;
  const bool has_value = (state == State::kComplete || state == State::kPruned) && trial.last &&
                         !std::isnan(*trial.last);
  const double started = story.started > 0 ? story.started : trial.first_time;
  std::string line =
      fmt::format("{{\"op_code\":{},\"worker_id\":\"{}\",\"study_id\":0,\"state\":{},\"value\":",
                  static_cast<int>(kCreateTrial), kWorker, static_cast<int>(state));
  has_value ? append_number(line, *trial.last) : void(line += "null");
  line += ",\"values\":null,\"datetime_start\":";
  line += state == State::kWaiting ? "null" : json_text(date(started));
  if (is_over) {
    const double ended = story.ended > 0 ? story.ended : trial.last_time;
    line += ",\"datetime_complete\":" + json_text(date(std::max(started, ended)));
  }
  line += ",\"distributions\":" + trial.params.distributions;
  line += ",\"params\":" + trial.params.params;
  line += ",\"user_attrs\":{\"trial_id\":" + json_text(id);
  line += fmt::format(",\"status\":\"{}\"", status_name(story.status));
  if (trial.last && std::isnan(*trial.last)) line += ",\"last_value\":\"nan\"";
  for (const std::string& attribute : trial.params.attributes) line += "," + attribute;
  line += "},\"system_attrs\":{},\"intermediate_values\":{" + trial.intermediate + "}}\n";
  return line;
}

// ---- The experiment -----------------------------------------------------------------------------

TrialStories read_stories(const fs::path& experiment, bool& are_there) {
  TrialStories stories;
  are_there = false;
  for_each_event(experiment,
                 {"attempt_started", "attempt_ended", "trial_ended", "failure", "driver_started",
                  "experiment_ended"},
                 [&](const Value& fields) {
                   are_there = true;
                   EventLine event;
                   event.fields = fields;
                   event.kind = event_text(fields, "event");
                   event.time = event_number(fields, "time");
                   event.trial = number_of_id(event_text(fields, "trial"));
                   stories.add(event);
                 });
  return stories;
}

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

std::string header_of(const ExperimentHead& head) {
  return fmt::format(
      "{{\"op_code\":{},\"worker_id\":\"{}\",\"study_name\":{},\"directions\":[{}]}}\n"
      "{{\"op_code\":{},\"worker_id\":\"{}\",\"study_id\":0,\"system_attr\":"
      "{{\"study:metric_names\":[{}]}}}}\n",
      static_cast<int>(kCreateStudy), kWorker, json_text(head.name),
      static_cast<int>(head.mode == Mode::kMin ? kMinimize : kMaximize),
      static_cast<int>(kSetStudySystemAttribute), kWorker, json_text(head.metric));
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

}  // namespace

OptunaExported export_to_optuna(const fs::path& experiment, const fs::path& file) {
  const ExperimentHead head = checked_head(experiment);
  if (head.metric.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("exporting {}: it has no metric, which a study of Optuna needs",
                            experiment.string()));
  }
  check_place(file);
  const OptunaSpace space(space_of(head));
  bool has_events = false;
  auto events =
      std::async(std::launch::async, [&] { return read_stories(experiment, has_events); });
  const TrialFolders folders = list_trial_folders(experiment);
  const auto id_of = [&](std::size_t i) {
    return fmt::format("{}{:05}", folders.prefix, folders.numbers[i]);
  };
  OptunaExported exported;
  exported.trials = folders.numbers.size();
  ReplacedFile out(file);
  out.write(header_of(head));
  std::optional<TrialStories> stories;
  std::map<std::string, TrialStatus> statuses;
  for (std::size_t from = 0; from < folders.numbers.size(); from += kTrialsAtOnce) {
    std::vector<TrialText> texts(std::min(kTrialsAtOnce, folders.numbers.size() - from));
    in_threads(texts.size(), [&](std::size_t i) {
      texts[i] = read_trial(experiment / id_of(from + i), space, head.metric);
    });
    if (!stories) {
      stories = events.get();
      if (!has_events) statuses = statuses_without_events(experiment);
    }
    std::string lines;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string id = id_of(from + i);
      const TrialStory* known = stories->find(folders.numbers[from + i]);
      TrialStory story;
      if (known != nullptr) story = *known;
      if (const auto told = statuses.find(id); told != statuses.end()) story.status = told->second;
      lines += line_of(id, story, texts[i]);
      if (!texts[i].problem.empty() && exported.problems.size() < kMaxProblems) {
        exported.problems.push_back(texts[i].problem);
      }
    }
    out.write(lines);
  }
  out.commit();
  return exported;
}

}  // namespace tune
