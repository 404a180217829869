#include "core/agent/group_pace.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

namespace tune {
namespace {

std::string phase_name(const GroupStep& word) {
  switch (word.action) {
    case GroupAction::kStep:
      return fmt::format("step {}", word.iteration);
    case GroupAction::kSave:
      return fmt::format("save {}", word.iteration);
    case GroupAction::kEnd:
      break;
  }
  return "the end";
}

}  // namespace

GroupPace::GroupPace(Time now, std::uint32_t ranks, bool loads) : ranks_(ranks) {
  for (Rank& rank : ranks_) rank.since = now;
  phases_.push_back({.name = "setup"});
  if (loads) phases_.push_back({.name = "load"});
}

void GroupPace::on_word(Time now, GroupStep word) {
  if (ranks_[0].ended) return;
  // A function that returns has finished the step it was in without a report.
  while (ranks_[0].done < begun()) on_done(now, 0);
  phases_.push_back({.name = phase_name(word), .is_end = word.action == GroupAction::kEnd});
  for (Rank& rank : ranks_) {
    if (may_return(rank)) rank.deserted.clear();
  }
}

// All that is left to it is the end, and the step in which rank 0's function may have returned too.
bool GroupPace::may_return(const Rank& rank) const {
  return !phases_.empty() && phases_.back().is_end && rank.done + 2 >= begun();
}

void GroupPace::on_done(Time now, std::uint32_t number) {
  Rank& rank = ranks_[number];
  if (rank.ended || rank.done == begun()) return;
  Phase& finished = phases_[rank.done - forgotten_];
  if (!finished.passed) finished.passed = now;
  ++rank.done;
  rank.since = now;
  const auto is_behind = [this](const Rank& one) { return !one.ended && one.done <= forgotten_; };
  while (!phases_.empty() && std::ranges::none_of(ranks_, is_behind)) {
    phases_.pop_front();
    ++forgotten_;
  }
}

void GroupPace::on_returned(Time now, std::uint32_t number) {
  Rank& rank = ranks_[number];
  if (number != 0 && !rank.ended && !may_return(rank)) {
    rank.deserted = phase_of(number);
    rank.since = now;
  }
  on_ended(now, number);
}

void GroupPace::on_ended(Time now, std::uint32_t number) {
  Rank& rank = ranks_[number];
  if (rank.ended) return;
  if (const Phase* last = phase(rank); last != nullptr && last->is_end) on_done(now, number);
  rank.ended = true;
}

void GroupPace::on_listening(Time now, std::uint32_t rank) {
  ranks_[rank].since = now;
}

std::optional<GroupPace::Awaited> GroupPace::awaited(bool leader_waits_for_driver) const {
  const bool is_leader_alone = std::ranges::all_of(ranks_ | std::views::drop(1), &Rank::ended);
  std::optional<Awaited> longest;
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    const Rank& rank = ranks_[number];
    Time since = rank.since;
    if (rank.ended) {
      if (rank.deserted.empty() || is_leader_alone) continue;
    } else if (const Phase* unfinished = phase(rank)) {
      if (!unfinished->passed) continue;
      since = std::max(since, *unfinished->passed);
    } else if (number != 0 || leader_waits_for_driver) {
      continue;
    }
    if (!longest || since < longest->since) longest = {number, since, rank.ended};
  }
  return longest;
}

std::string GroupPace::phase_of(std::uint32_t rank) const {
  const Phase* unfinished = phase(ranks_[rank]);
  return unfinished == nullptr ? std::string() : unfinished->name;
}

std::optional<GroupPace::Deserter> GroupPace::deserter() const {
  const Rank* first = nullptr;
  for (const Rank& rank : ranks_) {
    if (!rank.deserted.empty() && (first == nullptr || rank.done < first->done)) first = &rank;
  }
  if (first == nullptr) return std::nullopt;
  const auto number = static_cast<std::uint32_t>(first - ranks_.data());
  return Deserter{number, first->deserted, ranks_[0].done > first->done};
}

std::uint32_t GroupPace::hindmost() const {
  std::uint32_t found = 0;
  for (std::uint32_t number = 1; number < ranks_.size(); ++number) {
    const Rank& best = ranks_[found];
    const Rank& rank = ranks_[number];
    if (!rank.ended && (best.ended || rank.done < best.done)) found = number;
  }
  return found;
}

// Null between two phases.
const GroupPace::Phase* GroupPace::phase(const Rank& rank) const {
  const bool known = rank.done >= forgotten_ && rank.done < begun();
  return known ? &phases_[rank.done - forgotten_] : nullptr;
}

}  // namespace tune
