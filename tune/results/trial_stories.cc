#include "tune/results/trial_stories.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"

namespace tune {

namespace {

constexpr std::uint32_t kMaxTrialNumber = 1u << 22;

}  // namespace

double event_number(const Value& event, std::string_view key) {
  const Value* found = event.find(key);
  return found != nullptr && found->is_number() ? found->number() : 0;
}

std::uint64_t event_count(const Value& event, std::string_view key) {
  const double number = event_number(event, key);
  return number >= 0 && number < 9e15 ? static_cast<std::uint64_t>(number) : 0;
}

std::string event_text(const Value& event, std::string_view key) {
  const Value* found = event.find(key);
  return found != nullptr && found->is_string() ? found->string() : std::string();
}

std::optional<std::uint32_t> number_of_id(std::string_view id) {
  const std::size_t bar = id.rfind('_');
  if (bar == id.npos || bar + 6 > id.size()) return std::nullopt;
  std::uint32_t number = 0;
  const char* end = id.data() + id.size();
  const auto [stop, error] = std::from_chars(id.data() + bar + 1, end, number);
  if (error != std::errc() || stop != end || number > kMaxTrialNumber) return std::nullopt;
  return number;
}

EventLine event_from_line(std::string_view line, const std::string& where) {
  Value fields = parse_json(line, where);
  if (!fields.is_map()) {
    throw Error(ErrorCode::kBadInput, fmt::format("reading {}: expected an object", where));
  }
  return event_of_fields(std::move(fields));
}

EventLine event_of_fields(Value fields) {
  TUNE_CHECK(fields.is_map());
  EventLine event;
  event.fields = std::move(fields);
  event.kind = event_text(event.fields, "event");
  event.time = event_number(event.fields, "time");
  event.trial = number_of_id(event_text(event.fields, "trial"));
  return event;
}

namespace {

// Of a trial that does not run, and has not ended.
TrialStatus status_at_rest(const TrialStory& story) {
  return story.is_held ? TrialStatus::kPaused : TrialStatus::kPending;
}

}  // namespace

void TrialStories::on_order(TrialStory& story, const std::string& order) {
  if (order == "pause") story.is_held = true;
  if (order == "unpause" || order == "retry") story.is_held = false;
  if (order == "retry") story.ended = 0;
  const bool changes = order == "pause" || order == "unpause" || order == "retry";
  if (changes && story.status != TrialStatus::kRunning) story.status = status_at_rest(story);
}

void TrialStories::add(const EventLine& event) {
  if (!event.trial) {
    if (event.kind != "driver_started" && event.kind != "experiment_ended") return;
    if (event.fields.find("keeps") != nullptr) return;  // what is lost is told
    for (const std::uint32_t trial : running_) {
      stories_[trial]->status = status_at_rest(*stories_[trial]);
    }
    running_.clear();
    return;
  }
  const std::uint32_t trial = *event.trial;
  if (trial >= stories_.size()) stories_.resize(trial + 1);
  if (!stories_[trial]) stories_[trial].emplace();
  TrialStory& story = *stories_[trial];
  if (event.kind == "attempt_started") {
    story.status = TrialStatus::kRunning;
    story.attempts = static_cast<std::uint32_t>(event_count(event.fields, "attempt"));
    story.ended = 0;
    if (story.started == 0) story.started = event.time;
    story.reason.clear();
    running_.insert(trial);
  } else if (event.kind == "attempt_ended") {
    const std::string outcome = event_text(event.fields, "outcome");
    story.status = outcome == "paused" ? TrialStatus::kPaused : status_at_rest(story);
    story.was_stopped = outcome == "stopped";
    story.was_cut_short = outcome != "completed";
    running_.erase(trial);
  } else if (event.kind == "trial_ended") {
    const auto status = status_from_name(event_text(event.fields, "status"));
    story.status = status.value_or(TrialStatus::kTerminated);
    story.ended = event.time;
    story.is_held = false;
    running_.erase(trial);
  } else if (event.kind == "order") {
    on_order(story, event_text(event.fields, "order"));
  } else if (event.kind == "failure") {
    story.failures = static_cast<std::uint32_t>(event_count(event.fields, "failures"));
    story.reason = event_text(event.fields, "cause");
  } else if (event.kind == "verdict") {
    story.reason = event_text(event.fields, "reason");
  } else if (event.kind == "rung") {
    story.rung = event_count(event.fields, "milestone");
  }
}

const TrialStory* TrialStories::find(std::uint32_t trial) const {
  return trial < stories_.size() && stories_[trial] ? &*stories_[trial] : nullptr;
}

}  // namespace tune
