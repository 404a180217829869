#include "tune/view/history.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"

namespace tune::view {

namespace {

constexpr std::uint32_t kMaxTrialNumber = 1u << 22;

// Fields of later versions may have other types: what does not fit counts as absent.
double number_at(const Value& event, std::string_view key) {
  const Value* found = event.find(key);
  return found != nullptr && found->is_number() ? found->number() : 0;
}

std::uint64_t count_at(const Value& event, std::string_view key) {
  const double number = number_at(event, key);
  return number >= 0 && number < 9e15 ? static_cast<std::uint64_t>(number) : 0;
}

std::string text_at(const Value& event, std::string_view key) {
  const Value* found = event.find(key);
  return found != nullptr && found->is_string() ? found->string() : std::string();
}

std::uint32_t code_of(std::vector<std::string>& words, const std::string& word) {
  const auto found = std::find(words.begin(), words.end(), word);
  const auto at = found - words.begin();
  if (found == words.end()) words.push_back(word);
  return static_cast<std::uint32_t>(at);
}

std::string gpus_of(const Value& event) {
  const Value* gpus = event.find("gpus");
  std::string text;
  if (gpus == nullptr || !gpus->is_list()) return text;
  for (const Value& gpu : gpus->list()) {
    if (!text.empty()) text += ',';
    text += gpu.dump();
  }
  return text;
}

}  // namespace

std::optional<std::uint32_t> number_of_id(std::string_view id) {
  const std::size_t bar = id.rfind('_');
  if (bar == id.npos || bar + 6 > id.size()) return std::nullopt;
  std::uint32_t number = 0;
  const char* end = id.data() + id.size();
  const auto [stop, error] = std::from_chars(id.data() + bar + 1, end, number);
  if (error != std::errc() || stop != end || number > kMaxTrialNumber) return std::nullopt;
  return number;
}

std::optional<double> cut_off_of(std::string_view reason) {
  constexpr std::string_view kWord = "cut-off ";
  const std::size_t at = reason.find(kWord);
  if (at == reason.npos) return std::nullopt;
  double value = 0;
  const char* begin = reason.data() + at + kWord.size();
  const auto [end, error] = std::from_chars(begin, reason.data() + reason.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

History::Told History::add(std::string_view line, const std::string& where) {
  const Value event = parse_json(line, where);
  if (!event.is_map()) {
    throw Error(ErrorCode::kBadInput, fmt::format("reading {}: expected an object", where));
  }
  ++lines_;
  const double time = number_at(event, "time");
  if (first_ == 0) first_ = time;
  last_ = std::max(last_, time);
  const std::string kind = text_at(event, "event");
  const std::optional<std::uint32_t> trial = number_of_id(text_at(event, "trial"));
  if (!trial) {
    on_node(kind, time, event);
    return {};
  }
  TrialStory& story = story_of(*trial);
  if (kind == "attempt_started") {
    on_attempt_started(*trial, time, event);
  } else if (kind == "attempt_ended") {
    on_attempt_ended(*trial, time, event);
  } else if (kind == "trial_ended") {
    story.status = status_from_name(text_at(event, "status")).value_or(TrialStatus::kTerminated);
    story.ended = time;
  } else if (kind == "failure") {
    story.failures = static_cast<std::uint32_t>(count_at(event, "failures"));
    note(time, kind, fmt::format("{}: {}", text_at(event, "trial"), text_at(event, "cause")));
  } else if (kind == "verdict" && verdicts_.size() < kMaxVerdicts) {
    const auto cut_off = cut_off_of(text_at(event, "reason"));
    verdicts_.push_back({.trial = *trial,
                         .iteration = static_cast<std::uint32_t>(count_at(event, "iteration")),
                         .is_pause = text_at(event, "verdict") == "pause",
                         .cut_off = static_cast<float>(cut_off.value_or(std::nan(""))),
                         .time = time});
  }
  return {trial, kind == "replaced"};
}

void History::on_attempt_started(std::uint32_t trial, double time, const Value& event) {
  TrialStory& story = story_of(trial);
  story.status = TrialStatus::kRunning;
  story.attempts = static_cast<std::uint32_t>(count_at(event, "attempt"));
  story.ended = 0;
  if (story.started == 0) story.started = time;
  if (attempts_.size() >= kMaxAttempts) return;
  const std::uint32_t on = node(text_at(event, "node"));
  ++nodes_[on].running;
  open_[trial] = attempts_.size();
  attempts_.push_back({.trial = trial,
                       .attempt = story.attempts,
                       .node = on,
                       .gpus = code_of(gpu_lists_, gpus_of(event)),
                       .started = time});
}

void History::on_attempt_ended(std::uint32_t trial, double time, const Value& event) {
  const std::string outcome = text_at(event, "outcome");
  TrialStory& story = story_of(trial);
  story.status = outcome == "paused" ? TrialStatus::kPaused : TrialStatus::kPending;
  const auto open = open_.find(trial);
  if (open == open_.end()) return;
  Attempt& attempt = attempts_[open->second];
  attempt.ended = time;
  attempt.outcome = code_of(outcomes_, outcome);
  if (nodes_[attempt.node].running > 0) --nodes_[attempt.node].running;
  open_.erase(open);
}

void History::on_node(std::string_view kind, double time, const Value& event) {
  if (kind == "driver_started") {
    end_all(time, "lost");
    note(time, kind, fmt::format("driver {} began", count_at(event, "epoch")));
  } else if (kind == "node_joined") {
    NodeView& joined = nodes_[node(text_at(event, "node"))];
    joined.ip = text_at(event, "ip");
    joined.cpus = number_at(event, "cpus");
    joined.gpus = count_at(event, "gpus");
    joined.memory_bytes = count_at(event, "memory_bytes");
    joined.joined = time;
    joined.left = 0;
    joined.cause.clear();
  } else if (kind == "node_left") {
    NodeView& gone = nodes_[node(text_at(event, "node"))];
    gone.left = time;
    gone.cause = text_at(event, "cause");
    note(time, kind, fmt::format("{} left: {}", gone.name, gone.cause));
  } else if (kind == "place_set_aside") {
    set_aside_[text_at(event, "place")] = time;
    note(time, kind, text_at(event, "place") + " is set aside");
  } else if (kind == "place_taken_back") {
    set_aside_.erase(text_at(event, "place"));
    note(time, kind, text_at(event, "place") + " is taken back");
  } else if (kind == "notice") {
    note(time, kind, text_at(event, "text"));
  } else if (kind == "experiment_ended") {
    end_all(time, "lost");
    const std::string why = text_at(event, "why");
    note(time, kind, fmt::format("{}{}{}", text_at(event, "how"), why.empty() ? "" : ": ", why));
  }
}

void History::end_all(double time, const char* outcome) {
  for (const auto& [trial, at] : open_) {
    attempts_[at].ended = time;
    attempts_[at].outcome = code_of(outcomes_, outcome);
    story_of(trial).status = TrialStatus::kPending;
  }
  for (NodeView& node : nodes_) node.running = 0;
  open_.clear();
}

void History::note(double time, std::string_view event, std::string text) {
  notices_.push_back({time, std::string(event), std::move(text)});
  if (notices_.size() > kMaxNotices) notices_.pop_front();
}

const TrialStory* History::story(std::uint32_t trial) const {
  return trial < stories_.size() && stories_[trial] ? &*stories_[trial] : nullptr;
}

TrialStory& History::story_of(std::uint32_t trial) {
  if (trial >= stories_.size()) stories_.resize(trial + 1);
  if (!stories_[trial]) stories_[trial].emplace();
  return *stories_[trial];
}

std::uint32_t History::node(const std::string& name) {
  const auto [found, is_new] =
      node_index_.try_emplace(name, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({.name = name});
  return found->second;
}

}  // namespace tune::view
