#include "tune/view/history.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace tune::view {

namespace {

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
  const EventLine event = event_from_line(line, where);
  ++lines_;
  if (first_ == 0) first_ = event.time;
  last_ = std::max(last_, event.time);
  stories_.add(event);
  if (event.trial) {
    on_trial(event);
  } else {
    on_node(event.kind, event.time, event.fields);
  }
  return {event.trial, event.trial && event.kind == "replaced"};
}

void History::on_trial(const EventLine& told) {
  const auto& [event, kind, time, trial] = told;
  if (kind == "attempt_started") {
    on_attempt_started(*trial, time, event);
  } else if (kind == "attempt_ended") {
    on_attempt_ended(*trial, time, event);
  } else if (kind == "failure") {
    note(time, kind, fmt::format("{}: {}", event_text(event, "trial"), event_text(event, "cause")));
  } else if (kind == "order") {
    note_order(time, event);
  } else if (kind == "rung" && rung_visits_.size() < kMaxRungVisits) {
    on_rung(*trial, event);
  } else if (kind == "replaced" && descents_.size() < kMaxDescents) {
    const auto from = number_of_id(event_text(event, "from"));
    const auto count = [&event = event](std::string_view key) {
      return static_cast<std::uint32_t>(event_count(event, key));
    };
    if (from) descents_.push_back({*trial, count("iteration"), *from, count("from_iteration")});
  } else if (kind == "verdict" && verdicts_.size() < kMaxVerdicts) {
    const auto cut_off = cut_off_of(event_text(event, "reason"));
    verdicts_.push_back({.trial = *trial,
                         .iteration = static_cast<std::uint32_t>(event_count(event, "iteration")),
                         .is_pause = event_text(event, "verdict") == "pause",
                         .cut_off = static_cast<float>(cut_off.value_or(std::nan(""))),
                         .time = time});
  }
}

void History::on_rung(std::uint32_t trial, const Value& event) {
  const auto count = [&event](std::string_view key) {
    return static_cast<std::uint32_t>(event_count(event, key));
  };
  const auto number = [&event](std::string_view key) {
    const Value* found = event.find(key);
    return found != nullptr && found->is_number() ? static_cast<float>(found->number())
                                                  : std::nanf("");
  };
  const std::string verdict = event_text(event, "verdict");
  using Verdict = RungVisit::Verdict;
  rung_visits_.push_back(
      {.trial = trial,
       .iteration = count("iteration"),
       .bracket = event.contains("bracket") ? count("bracket") : RungVisit::kNoBracket,
       .rank = count("rank"),
       .of = count("of"),
       .milestone = event_number(event, "milestone"),
       .value = number("value"),
       .cut_off = number("cut_off"),
       .verdict = verdict == "stop"    ? Verdict::kStop
                  : verdict == "pause" ? Verdict::kPause
                                       : Verdict::kGoOn});
}

void History::on_attempt_started(std::uint32_t trial, double time, const Value& event) {
  if (attempts_.size() >= kMaxAttempts) return;
  const std::uint32_t on = node(event_text(event, "node"));
  ++nodes_[on].running;
  open_[trial] = attempts_.size();
  attempts_.push_back({.trial = trial,
                       .attempt = static_cast<std::uint32_t>(event_count(event, "attempt")),
                       .node = on,
                       .gpus = code_of(gpu_lists_, gpus_of(event)),
                       .started = time});
}

void History::on_attempt_ended(std::uint32_t trial, double time, const Value& event) {
  const auto open = open_.find(trial);
  if (open == open_.end()) return;
  Attempt& attempt = attempts_[open->second];
  attempt.ended = time;
  attempt.outcome = code_of(outcomes_, event_text(event, "outcome"));
  if (nodes_[attempt.node].running > 0) --nodes_[attempt.node].running;
  open_.erase(open);
}

void History::on_node(std::string_view kind, double time, const Value& event) {
  if (kind == "driver_started") {
    if (event.find("keeps") == nullptr) end_all(time, "lost");
    note(time, kind, fmt::format("driver {} began", event_count(event, "epoch")));
  } else if (kind == "node_joined") {
    NodeView& joined = nodes_[node(event_text(event, "node"))];
    joined.ip = event_text(event, "ip");
    joined.cpus = event_number(event, "cpus");
    joined.gpus = event_count(event, "gpus");
    joined.memory_bytes = event_count(event, "memory_bytes");
    joined.joined = time;
    joined.left = 0;
    joined.cause.clear();
  } else if (kind == "node_left") {
    NodeView& gone = nodes_[node(event_text(event, "node"))];
    gone.left = time;
    gone.cause = event_text(event, "cause");
    note(time, kind, fmt::format("{} left: {}", gone.name, gone.cause));
  } else if (kind == "place_set_aside") {
    set_aside_[event_text(event, "place")] = time;
    note(time, kind, event_text(event, "place") + " is set aside");
  } else if (kind == "place_taken_back") {
    set_aside_.erase(event_text(event, "place"));
    note(time, kind, event_text(event, "place") + " is taken back");
  } else if (kind == "notice") {
    note(time, kind, event_text(event, "text"));
  } else if (kind == "order") {
    note_order(time, event);
  } else if (kind == "allocation" || kind == "pool") {
    on_pool(kind, time, event);
  } else if (kind == "experiment_ended") {
    end_all(time, "lost");
    allocations_.clear();
    const std::string why = event_text(event, "why");
    note(time, kind, fmt::format("{}{}{}", event_text(event, "how"), why.empty() ? "" : ": ", why));
  }
}

void History::on_pool(std::string_view kind, double time, const Value& event) {
  if (kind == "pool") {
    const Value* paused = event.find("paused");
    if (paused == nullptr || paused->type() != Value::Type::kBool) return;
    const std::string cause = event_text(event, "cause");
    why_paused_ = !paused->boolean() ? "" : cause.empty() ? "it was paused" : cause;
    return;
  }
  const std::uint64_t number = event_count(event, "number");
  std::string state = event_text(event, "state");
  if (state == "ended") {
    allocations_.erase(number);
    return;
  }
  if (!allocations_.contains(number) && allocations_.size() >= kMaxAllocations) return;
  AllocationView& one = allocations_[number];
  if (one.asked == 0) one.asked = time;
  if (one.state != state) one.since = time;
  one.state = std::move(state);
  one.id = event_text(event, "id");
  one.host = event_text(event, "host");
  one.reason = event_text(event, "reason");
}

void History::end_all(double time, const char* outcome) {
  for (const auto& [trial, at] : open_) {
    attempts_[at].ended = time;
    attempts_[at].outcome = code_of(outcomes_, outcome);
  }
  for (NodeView& node : nodes_) node.running = 0;
  open_.clear();
}

// "pause of 2f1e0_00003 by ada: too slow"
void History::note_order(double time, const Value& event) {
  std::string text = event_text(event, "order");
  const std::string trial = event_text(event, "trial");
  if (!trial.empty()) text += " of " + trial;
  if (text == "num_samples") text += fmt::format(": {}", event_count(event, "num_samples"));
  text += " by " + event_text(event, "user");
  const std::string why = event_text(event, event.contains("text") ? "text" : "reason");
  note(time, "order", why.empty() ? text : text + ": " + why);
}

void History::note(double time, std::string_view event, std::string text) {
  notices_.push_back({time, std::string(event), std::move(text)});
  if (notices_.size() > kMaxNotices) notices_.pop_front();
}

std::uint32_t History::node(const std::string& name) {
  const auto [found, is_new] =
      node_index_.try_emplace(name, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({.name = name});
  return found->second;
}

}  // namespace tune::view
