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
  before_steps_ = phases_.size();
}

bool GroupPace::is_any_before_its_first_step() const {
  return std::ranges::any_of(
      ranks_, [this](const Rank& rank) { return !rank.ended && rank.done < before_steps_; });
}

void GroupPace::on_word(Time now, GroupStep word) {
  if (ranks_[0].ended) return;
  // A function that returns has finished the step it was in without a report.
  while (ranks_[0].done < begun()) on_done(now, 0);
  phases_.push_back({.name = phase_name(word), .is_end = word.action == GroupAction::kEnd,
                     .is_save = word.action == GroupAction::kSave});
  for (Rank& rank : ranks_) {
    if (may_return(rank)) rank.deserted.clear();
  }
}

// Only the end is left to this rank, and the step in which rank 0's function may have returned too.
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
  if (finished.is_save) hold_time(now);
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
  on_alone(now, number, false);
  rank.ended = true;
}

// The time of all ranks begins anew when one that was alone is back.
void GroupPace::on_alone(Time now, std::uint32_t number, bool begins) {
  Rank& rank = ranks_[number];
  if (rank.ended || begins == rank.alone_since.has_value()) return;
  if (begins) {
    rank.alone_since = now;
    return;
  }
  rank.alone_since.reset();
  hold_time(now);
}

// Holds the time of all other ranks.
void GroupPace::hold_time(Time now) {
  for (Rank& rank : ranks_) rank.since = now;
}

void GroupPace::begin_anew(Time now) {
  hold_time(now);
  for (Rank& rank : ranks_) {
    if (rank.alone_since) rank.alone_since = now;
  }
}

bool GroupPace::is_alone(const Rank& rank) const {
  if (rank.ended) return false;
  const Phase* unfinished = phase(rank);
  return rank.alone_since || (unfinished != nullptr && unfinished->is_save);
}

bool GroupPace::is_another_alone(std::uint32_t rank) const {
  return std::ranges::any_of(
      ranks_, [&](const Rank& one) { return &one != &ranks_[rank] && is_alone(one); });
}

void GroupPace::on_listening(Time now, std::uint32_t rank) {
  ranks_[rank].since = now;
}

std::optional<GroupPace::Awaited> GroupPace::awaited(const Limits& limits,
                                                     bool leader_waits_for_driver) const {
  const bool any_alone =
      std::ranges::any_of(ranks_, [this](const Rank& rank) { return is_alone(rank); });
  std::optional<Awaited> first;
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    if (any_alone && !is_alone(ranks_[number])) continue;
    const auto found = awaited(number, limits, leader_waits_for_driver);
    if (found && (!first || found->due < first->due)) first = found;
  }
  return first;
}

// Nothing for a rank that is not awaited, or that may take any time.
std::optional<GroupPace::Awaited> GroupPace::awaited(std::uint32_t number, const Limits& limits,
                                                     bool leader_waits_for_driver) const {
  const Rank& rank = ranks_[number];
  Time since = rank.since;
  bool alone = false;
  if (rank.alone_since) {
    since = *rank.alone_since;
    alone = true;
  } else if (rank.ended) {
    const bool is_leader_alone = std::ranges::all_of(ranks_ | std::views::drop(1), &Rank::ended);
    if (rank.deserted.empty() || is_leader_alone) return std::nullopt;
  } else if (const Phase* unfinished = phase(rank)) {
    if (!unfinished->passed) return std::nullopt;
    since = std::max(since, *unfinished->passed);
    alone = unfinished->is_save;
  } else if (number != 0 || leader_waits_for_driver) {
    return std::nullopt;
  }
  const Time limit = alone ? limits.alone : limits.group;
  if (limit == Time::zero()) return std::nullopt;
  return Awaited{number, since + limit, rank.ended, alone};
}

std::string GroupPace::complaint(const Awaited& late, const Limits& limits) const {
  const std::string phase = phase_of(late.rank);
  const char* option = late.alone ? "alone_timeout_s" : "group_timeout_s";
  const double limit = seconds(late.alone ? limits.alone : limits.group);
  const std::string what =
      late.returned
          ? fmt::format("ended in {}, which others have not finished {:g} s later", phase, limit)
      : ranks_[late.rank].alone_since
          ? fmt::format("worked alone in {} for {:g} s", phase, limit)
      : phase.empty()
          ? fmt::format("did not tell the other ranks within {:g} s how to go on", limit)
          : fmt::format("did not finish {} within {:g} s of another rank", phase, limit);
  return fmt::format("{} ({}), killed", what, option);
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
