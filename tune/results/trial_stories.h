// TrialStories: what became of each trial, by the events of an experiment (events.jsonl). For
// readers of the folder, beside and after a run. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/trial.h"
#include "core/value.h"

namespace tune {

// The fate of a trial by its events.
struct TrialStory {
  TrialStatus status = TrialStatus::kPending;
  std::uint32_t attempts = 0;
  std::uint32_t failures = 0;
  bool is_held = false;      // a user has paused it
  bool was_stopped = false;  // its newest attempt ended by a decision, not because it had completed
  bool was_cut_short = false;  // its newest attempt ended otherwise than by having completed
  double started = 0;        // unix seconds; 0: it never did
  double ended = 0;          // for good; 0: not yet
  std::uint64_t rung = 0;    // milestone of the newest one that it came to; 0: none
  std::string reason = {};   // of the newest verdict that stopped or paused it, or of its failure
};

// One line of events.jsonl.
struct EventLine {
  Value fields;
  std::string kind;
  double time = 0;
  std::optional<std::uint32_t> trial;
};
// Throws Error (kBadInput) naming `where` when it is not a JSON object.
EventLine event_from_line(std::string_view line, const std::string& where);
EventLine event_of_fields(Value fields);  // TUNE_CHECK: a map

// Fields of later versions may have other types: what does not fit counts as absent.
double event_number(const Value& event, std::string_view key);
std::uint64_t event_count(const Value& event, std::string_view key);
std::string event_text(const Value& event, std::string_view key);

// The number in a trial's id, "2f1e0_00003"; nothing for any other text.
std::optional<std::uint32_t> number_of_id(std::string_view id);

class TrialStories {
 public:
  void add(const EventLine& event);
  // Nothing when no event named it.
  const TrialStory* find(std::uint32_t trial) const;
  const std::set<std::uint32_t>& running() const { return running_; }

 private:
  static void on_order(TrialStory& story, const std::string& order);

  std::vector<std::optional<TrialStory>> stories_;  // by trial
  std::set<std::uint32_t> running_;
};

}  // namespace tune
