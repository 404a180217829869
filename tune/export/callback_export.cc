#include "tune/export/callback_export.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/checkpoint_name.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

CallbackTrial told_as(const FollowedTrial& trial) {
  return {.number = trial.number, .id = trial.id, .directory = trial.directory};
}

}  // namespace

CallbackExport::CallbackExport(std::shared_ptr<Callback> callback, fs::path experiment,
                               fs::path cursor)
    : callback_(std::move(callback)),
      experiment_(std::move(experiment)),
      follower_(experiment_),
      cursor_(std::move(cursor)) {}

void CallbackExport::write_news(const std::function<bool()>& ends) {
  follower_.poll(*this, ends);
  cursor_.save();
}

void CallbackExport::finish() {
  tell([this](Callback& callback) { callback.sweep_ended(experiment_); });
}

std::vector<std::string> CallbackExport::take_problems() {
  const std::vector<std::string>& all = follower_.problems();
  std::copy(all.begin() + static_cast<std::ptrdiff_t>(told_problems_), all.end(),
            std::back_inserter(problems_));
  told_problems_ = all.size();
  return std::exchange(problems_, {});
}

void CallbackExport::tell(const std::function<void(Callback&)>& what) {
  std::string thrown;
  try {
    return what(*callback_);
  } catch (const std::exception& error) {
    thrown = error.what();
  } catch (...) {
    thrown = "something that is not a std::exception";
  }
  if (std::exchange(has_thrown_, true)) return;
  problems_.push_back("it threw: " + thrown + " (said once; it goes on being called)");
}

void CallbackExport::tell_start(const CallbackTrial& trial, Cursor::Place& place) {
  if (std::exchange(place.started, 1) == 1) return;
  tell([&](Callback& callback) { callback.trial_started(trial); });
}

void CallbackExport::result(const FollowedTrial& followed, std::string_view line,
                            const std::string& where) {
  Cursor::Place place = cursor_.at(followed.number);
  if (followed.iterations <= place.iterations) return;
  const CallbackTrial trial = told_as(followed);
  const Result result = result_from_line(line, where);
  tell_start(trial, place);
  tell([&](Callback& callback) { callback.result(trial, result); });
  place.iterations = followed.iterations;
  cursor_.set(followed.number, place);
}

void CallbackExport::trial_is_read(const FollowedTrial& followed) {
  Cursor::Place place = cursor_.at(followed.number);
  const CallbackTrial trial = told_as(followed);
  const bool is_over = tune::is_over(followed.story.status);
  if (followed.story.started > 0 || is_over) tell_start(trial, place);
  if (place.started == 1) tell_checkpoints(trial, place);
  // A trial that failed may be tried again, and end again.
  const bool was_over = std::exchange(place.ended, is_over ? 1 : 0) == 1;
  if (is_over && !was_over) {
    tell([&](Callback& callback) { callback.trial_ended(trial, followed.story.status); });
  }
  cursor_.set(followed.number, place);
}

void CallbackExport::tell_checkpoints(const CallbackTrial& trial, Cursor::Place& place) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, fs::path> fresh;  // by attempt and iteration
  std::error_code error;
  fs::directory_iterator entry(trial.directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto id = checkpoint_of_name(entry->path().filename().string());
    if (!id) continue;
    const std::pair at{std::uint64_t{id->attempt.value}, id->iteration};
    const std::pair told{place.checkpoint_attempt, place.checkpoint_iteration};
    if (at > told) fresh[at] = entry->path();
  }
  for (const auto& [at, folder] : fresh) {
    tell([&](Callback& callback) { callback.checkpoint(trial, folder, at.second); });
    std::tie(place.checkpoint_attempt, place.checkpoint_iteration) = at;
  }
}

}  // namespace tune
