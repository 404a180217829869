#include "tune/export/follower.h"

#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "tune/export/exporter.h"
#include "tune/results/trial_folders.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

// The newest results of a trial may reach their file a moment after the event of its end.
constexpr int kLooksAfterEnd = 3;

}  // namespace

void Follower::list_trials() {
  const TrialFolders found = list_trial_folders(experiment_);
  if (found.error) throw file_error("reading the folder", experiment_, found.error.value());
  id_prefix_ = found.prefix;
  due_.insert(found.numbers.begin(), found.numbers.end());
}

bool Follower::read_events() {
  const TailVisitor visit{.begun_anew =
                              [this] {
                                stories_ = {};
                                for (const auto& [number, trial] : trials_) due_.insert(number);
                              },
                          .line = [this](std::string_view line) { take_event(line); }};
  return read_tail(experiment_ / "events.jsonl", events_, visit) != TailNews::kNone;
}

void Follower::take_event(std::string_view line) try {
  const EventLine event = event_from_line(line, "events.jsonl");
  stories_.add(event);
  if (!event.trial) return;
  if (id_prefix_.empty()) id_prefix_ = event_text(event.fields, "trial").substr(0, 6);
  due_.insert(*event.trial);
} catch (const Error& error) {  // of later versions, or damaged
  complain(error.what());
}

bool Follower::poll(FolderListener& listener, const std::function<bool()>& ends) {
  if (!std::exchange(is_listed_, true)) list_trials();
  bool is_new = read_events();
  due_.insert(stories_.running().begin(), stories_.running().end());
  std::set<std::uint32_t> later;
  while (!due_.empty() && !ends()) {
    const std::uint32_t number = *due_.begin();
    is_new = read_trial(number, listener) || is_new;
    due_.erase(due_.begin());
    if (trials_[number].looks_left > 0) later.insert(number);
  }
  due_.merge(later);
  return is_new;
}

bool Follower::read_trial(std::uint32_t number, FolderListener& listener) {
  Followed& followed = trials_[number];
  FollowedTrial trial;
  trial.number = number;
  trial.id = fmt::format("{}{:05}", id_prefix_, number);
  trial.directory = experiment_ / trial.id;
  if (const TrialStory* story = stories_.find(number)) trial.story = *story;
  const bool is_new = read_results(followed, trial, listener);
  trial.iterations = followed.iterations;
  listener.trial_is_read(trial);
  const bool runs = trial.story.status == TrialStatus::kRunning;
  followed.looks_left = runs || is_new ? kLooksAfterEnd : followed.looks_left - 1;
  return is_new;
}

bool Follower::read_results(Followed& followed, FollowedTrial& trial, FolderListener& listener) {
  if (followed.is_damaged) return false;
  const std::string where = trial.id + "/result.json";
  const TailVisitor visit{.begun_anew = [&] { followed.iterations = 0; },
                          .line =
                              [&](std::string_view line) {
                                trial.iterations = followed.iterations + 1;
                                listener.result(trial, line, where);
                                ++followed.iterations;
                              }};
  try {
    return read_tail(trial.directory / "result.json", followed.results, visit) != TailNews::kNone;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    followed.is_damaged = true;
    complain(error.what());
    return true;
  }
}

void Follower::complain(const std::string& what) {
  if (problems_.size() < kMaxProblems) problems_.push_back(what);
}

}  // namespace tune
