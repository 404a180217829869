#include "tune/export/tensorboard.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "tune/export/curves.h"
#include "tune/export/hparams.h"
#include "tune/results/result_lines.h"
#include "tune/results/result_scan.h"

namespace tune {

namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kColumnsFile = "events.out.tfevents.0000000000.tune";
constexpr const char* kStepTime = "time_this_iter_s";
// TensorBoard looks every 5 s by default, and takes longer over many runs.
constexpr std::chrono::seconds kColumnsAway{30};

bool holds_columns(const fs::path& file, const std::string& content) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return false;
  bool is_same = false;
  for_each_record(read_file(file),
                  [&](std::string_view event) { is_same = event.ends_with(content); });
  return is_same;
}

double now_s() {
  return static_cast<double>(std::time(nullptr));
}

}  // namespace

TensorBoardExport::TensorBoardExport(const fs::path& experiment, fs::path target)
    : experiment_(experiment),
      target_(std::move(target)),
      head_(checked_head(experiment)),
      space_(space_of(head_)),
      follower_(experiment) {
  std::error_code error;
  fs::create_directories(target_, error);
  if (error) throw file_error("making the folder", target_, error.value());
}

// On the folder itself: nothing stays behind.
bool TensorBoardExport::has_target() {
  if (lock_.is_open()) return true;
  FileDescriptor folder(open(target_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) throw file_error("opening", target_, errno);
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  lock_ = std::move(folder);
  return true;
}

void TensorBoardExport::write_news(const std::function<bool()>& ends) {
  if (!has_target()) return;
  follower_.poll(*this, ends);
  refresh_columns(SteadyClock::now());
}

void TensorBoardExport::finish() {
  const bool had_target = lock_.is_open();
  if (!has_target()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("writing {}: another process writes it, as a sweep with loggers: "
                            "[tensorboard] does: wait for its end, or name another folder with "
                            "--to",
                            target_.string()));
  }
  if (!had_target) follower_.poll(*this, [] { return false; });
  if (!std::exchange(columns_are_old_, false)) return;
  const std::string content = columns();
  if (!holds_columns(target_ / kColumnsFile, content)) write_columns(content);
}

std::vector<std::string> TensorBoardExport::take_problems() {
  const std::vector<std::string>& all = follower_.problems();
  std::vector<std::string> fresh(all.begin() + static_cast<std::ptrdiff_t>(told_problems_),
                                 all.end());
  told_problems_ = all.size();
  return fresh;
}

// ---- Trials -------------------------------------------------------------------------------------

void TensorBoardExport::result(const FollowedTrial& trial, std::string_view line,
                               const std::string& where) {
  scalars_.clear();
  double time = 0;
  std::size_t place = 0;
  scan_numbers(line, where, [&](std::string_view path, double value) {
    if (path == kTimestampField) time = value;
    if (!makes_a_curve(path)) return;
    scalars_.add(path, value);
    note_metric(path, place++);
  });
  run_of(trial, time).result(trial.iterations, scalars_.event(time, trial.iterations), time);
}

// Mostly the names are those of the result before.
void TensorBoardExport::note_metric(std::string_view name, std::size_t place) {
  if (place < newest_names_.size() && newest_names_[place] == name) return;
  newest_names_.resize(place);
  newest_names_.emplace_back(name);
  if (metrics_.contains(name)) return;
  metrics_.emplace(name);
  columns_are_old_ = true;
}

TrialRun& TensorBoardExport::run_of(const FollowedTrial& trial, double time) {
  const auto known = runs_.find(trial.number);
  if (known != runs_.end()) return known->second;
  TrialRun run(target_ / trial.id);
  if (run.is_new()) {
    const fs::path params = trial.directory / "params.json";
    Config config;
    if (fs::exists(params)) config = config_from_json(read_file(params), params.string());
    const double started = trial.story.started;
    run.begin(config, trial.id, started > 0 ? started : time > 0 ? time : now_s());
  }
  done_.erase(trial.number);
  return runs_.emplace(trial.number, std::move(run)).first->second;
}

void TensorBoardExport::trial_is_read(const FollowedTrial& trial) {
  const TrialStory& story = trial.story;
  if (story.started == 0 && trial.iterations == 0 && !is_over(story.status)) return;
  const Done now{story.status, trial.iterations};
  const auto done = done_.find(trial.number);
  if (done != done_.end() && done->second == now) return;
  TrialRun& run = run_of(trial, 0);
  if (is_over(story.status)) run.end(story.status, trial.iterations, story.ended);
  run.flush();
  if (story.status == TrialStatus::kRunning) return;
  runs_.erase(trial.number);
  done_[trial.number] = now;
}

// ---- The columns of HParams ---------------------------------------------------------------------

// The experiment's metric first.
std::string TensorBoardExport::columns() const {
  std::vector<std::string> names;
  const std::string& first = head_.metric;
  if (metrics_.contains(first)) names.push_back(first);
  for (const std::string& name : metrics_) {
    if (name != first && name != kStepTime) names.push_back(name);
  }
  return hparams_experiment(space_, names);
}

// TensorBoard keeps the first columns that it meets in a run, whatever the run's files have later.
// So columns that lack a metric are taken away for a while: it forgets a run without files, and
// meanwhile gathers the columns from the trials.
void TensorBoardExport::refresh_columns(SteadyClock::time_point now) {
  if (!columns_are_old_ || now < columns_are_due_ || metrics_.empty()) return;
  const std::string content = columns();
  const bool is_there = fs::exists(target_ / kColumnsFile);
  if (is_there && !holds_columns(target_ / kColumnsFile, content)) {
    fs::remove(target_ / kColumnsFile);
    columns_are_due_ = now + kColumnsAway;
    return;
  }
  columns_are_old_ = false;
  if (!is_there) write_columns(content);
}

void TensorBoardExport::write_columns(const std::string& content) {
  std::string text;
  append_record(text, version_event(now_s()));
  append_record(text, plugin_event(now_s(), kHparamsExperiment, kHparamsPlugin, content));
  write_file_atomically(target_ / kColumnsFile, text);
}

}  // namespace tune
