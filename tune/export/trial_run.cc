#include "tune/export/trial_run.h"

#include <utility>

#include "core/event_file.h"
#include "core/platform/files.h"
#include "core/random.h"
#include "tune/export/hparams.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

// TensorBoard takes any name with "tfevents" in it, and reads the files of a run by name.
constexpr const char* kFile = "events.out.tfevents.0000000000.tune";

constexpr std::size_t kMaxPending = 1u << 20;

bool is_outcome(std::string_view event) {
  return event.find(kHparamsEnd) != event.npos && head_of_event(event).step == 0;
}
bool is_start(std::string_view event) {
  return event.find(kHparamsStart) != event.npos && head_of_event(event).step == 0;
}

}  // namespace

TrialRun::TrialRun(const fs::path& folder) : file_(folder / kFile) {
  std::error_code missing;
  if (!fs::exists(file_, missing)) return;
  bool is_begun = false;
  length_ = for_each_record(read_file(file_), [&](std::string_view event) {
    is_begun = is_begun || is_start(event);
    read_back(event);
  });
  if (!is_begun) length_ = 0;
  cut_file(file_, length_);
}

void TrialRun::read_back(std::string_view event) {
  const EventHead head = head_of_event(event);
  if (head.is_restart) {
    if (head.step > 0 && head.step <= hashes_.size()) hashes_.resize(head.step - 1);
  } else if (head.step == hashes_.size() + 1) {
    hashes_.push_back(hash64(event));
  } else if (is_outcome(event)) {
    outcome_ = event;
  }
}

void TrialRun::begin(const Config& config, std::string_view trial_id, double time) {
  append_record(pending_, version_event(time));
  const std::string start = hparams_start(config, trial_id, time);
  append_record(pending_, plugin_event(time, kHparamsStart, kHparamsPlugin, start));
}

void TrialRun::result(std::uint64_t iteration, std::string_view event, double time) {
  const std::uint64_t hash = hash64(event);
  if (iteration <= hashes_.size()) {
    if (hashes_[iteration - 1] == hash) return;
    forget_from(iteration, time);
  }
  hashes_.push_back(hash);
  append_record(pending_, event);
  if (pending_.size() >= kMaxPending) flush();
}

void TrialRun::forget_from(std::uint64_t iteration, double time) {
  append_record(pending_, restart_event(time, iteration));
  hashes_.resize(iteration - 1);
}

void TrialRun::end(TrialStatus status, std::uint64_t iterations, double time) {
  if (iterations < hashes_.size()) forget_from(iterations + 1, time);
  const std::string content = hparams_end(status);
  if (outcome_.ends_with(content)) return;
  if (!outcome_.empty()) drop_outcome();
  outcome_ = plugin_event(time, kHparamsEnd, kHparamsPlugin, content);
  append_record(pending_, outcome_);
}

void TrialRun::drop_outcome() {
  flush();
  std::string kept;
  for_each_record(read_file(file_), [&](std::string_view event) {
    if (!is_outcome(event)) append_record(kept, event);
  });
  write_file_atomically(file_, kept);
  length_ = kept.size();
}

void TrialRun::flush() {
  if (pending_.empty()) return;
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  if (error) throw file_error("making the folder", file_.parent_path(), error.value());
  AppendFile(file_, false).write(pending_);
  length_ += pending_.size();
  pending_.clear();
}

}  // namespace tune
