// An experiment told to a FileLogger, record by record, without controller or processes.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>

#include "core/json.h"
#include "core/platform/files.h"
#include "trainables/temporary_folder.h"
#include "tune/control/experiment_setup.h"
#include "tune/results/file_logger.h"
#include "tune/results/last_results.h"
#include "tune/spec/objectives.h"

namespace tune {

inline ExperimentSpec story_spec() {
  ExperimentSpec spec;
  spec.name = "story";
  spec.trainable = "Curve";
  spec.options.metric = "acc";
  spec.options.mode = Mode::kMax;
  spec.options.seed = 7;
  spec.options.config = {
      {"lr", uniform(0, 1)}, {"model", {{"act", choice({"relu", "tanh"})}}}, {"batch", 64}};
  return spec;
}

class Story {
 public:
  enum class Node { kJoined, kJoinsLater };
  explicit Story(ExperimentSpec spec = story_spec(), Node node = Node::kJoined)
      : Story(std::move(spec), nullptr) {
    if (node == Node::kJoined) join();
  }
  // The same experiment's folder with another logger, as after a restart.
  Story(ExperimentSpec spec, const Story* earlier)
      : own_(earlier == nullptr ? std::make_unique<testing::TemporaryFolder>() : nullptr),
        path_(earlier == nullptr ? own_->path() / spec.name : earlier->path_),
        spec_(std::move(spec)) {
    std::filesystem::create_directories(path_);
    logger_ = std::make_unique<FileLogger>(path_, spec_, work_);
    last_ = std::make_unique<LastResults>();
  }

  void join() {
    AgentHello hello;
    hello.hostname = "node";
    hello.ip = "10.0.0.3";
    tell(NodeJoined{AgentNumber{0}, hello});
  }

  Trial& add(const Config& config = {{"lr", 0.5}, {"model", {{"act", "relu"}}}, {"batch", 64}}) {
    Trial& trial = trials_.emplace_back();
    trial.number.value = static_cast<std::uint32_t>(trials_.size() - 1);
    trial.config = pack(config);
    trial.placement = Placement{};
    trial.location = "10.0.0.3:4711";
    tell(TrialAdded{trial});
    set_status(trial, TrialStatus::kRunning);
    return trial;
  }

  void report(Trial& trial, const Result& result, bool done = false) {
    report_packed(trial, pack(result), done);
  }
  // Each step takes half a second, and a second of wall time goes by.
  void report_packed(Trial& trial, Packed result, bool done = false) {
    Reported report;
    report.trial = trial.number;
    report.iteration = trial.last ? trial.last->iteration + 1 : 1;
    report.time_this_iter = std::chrono::milliseconds(500);
    report.time_total = report.time_this_iter * static_cast<std::int64_t>(report.iteration);
    report.time_since_restore = report.time_total;
    report.iterations_since_restore = report.iteration;
    report.timesteps_total = timesteps;
    report.result = std::move(result);
    trial.last = report;
    wall += std::chrono::seconds(1);
    tell(ResultRecorded{trial, report, done});
    if (done) set_status(trial, TrialStatus::kTerminated);
  }

  void cut(Trial& trial, std::uint64_t iteration) {
    tell(ResultsCut{trial, iteration});
    if (iteration == 0) {
      trial.last.reset();
    } else {
      trial.last->iteration = iteration;
    }
  }

  void fail(Trial& trial, const std::string& cause, bool retried) {
    trial.failure = Failure{
        AttemptNumber{++trial.attempt.value}, Outcome::kException, 0, 0, cause, "line 1\nline 2\n"};
    set_status(trial, retried ? TrialStatus::kPending : TrialStatus::kError);
    tell(AttemptFailed{trial, retried});
  }

  void set_status(Trial& trial, TrialStatus status) {
    trial.status = status;
    tell(TrialChanged{trial});
  }

  void tell(const Record& record) {
    if (is_muted) return;
    logger_->record(record, {wall});
    last_->record(record, {wall});
  }
  // The turn is over; its records are in the files.
  void flush() {
    if (is_muted || is_replay) return;
    logger_->flush();
    work_.finish();
  }
  FileLogger& logger() { return *logger_; }
  LastResults& last_results() { return *last_; }

  std::filesystem::path directory(const Trial& trial) const {
    return logger_->trial_directory(trial.number);
  }
  std::string read(const Trial& trial, const char* file) {
    flush();
    return testing::read_text(directory(trial) / file);
  }
  // The files that a driver leaves besides the logger's.
  void write_spec() {
    write_file_atomically(
        path_ / "experiment.json",
        to_json(Config{{"name", spec_.name},
                       {"metric", spec_.options.metric},
                       {"mode", *spec_.options.mode == Mode::kMax ? "max" : "min"},
                       {"objectives", objectives_to_value(spec_.options.objectives)},
                       {"constraints", constraints_to_value(spec_.options.constraints)}}));
  }
  const std::filesystem::path& path() const { return path_; }
  const ExperimentSpec& spec() const { return spec_; }
  std::deque<Trial>& trials() { return trials_; }

  WallTime wall = std::chrono::seconds(1'700'000'000);
  std::optional<double> timesteps;
  bool is_muted = false;   // the logger is told nothing
  bool is_replay = false;  // there are no turns

 private:
  std::unique_ptr<testing::TemporaryFolder> own_;
  std::filesystem::path path_;
  ExperimentSpec spec_;
  SideWork work_{1u << 20};
  std::unique_ptr<FileLogger> logger_;
  std::unique_ptr<LastResults> last_;
  std::deque<Trial> trials_;
};

inline std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace tune
