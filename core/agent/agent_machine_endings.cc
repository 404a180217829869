// How attempts end: causes, signals, deadlines.
#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "core/agent/agent_machine.h"

namespace tune {
namespace {

// Of a rank that ended without a last word.
AgentMachine::Cause exit_cause(const ProcessEnd& end, std::uint32_t rank) {
  AgentMachine::Cause cause{.outcome = end.signalled ? Outcome::kSignal : Outcome::kExit,
                            .text = end.text,
                            .code = end.code,
                            .rank = rank};
  if (!end.signalled) cause.text += " before its trial was over";
  if (end.signalled && end.code == SIGKILL) cause.text += ", as the kernel does to free memory";
  return cause;
}

void earliest(std::optional<AgentTime>& soonest, std::optional<AgentTime> other) {
  if (other && (!soonest || *other < *soonest)) soonest = other;
}

bool all_said_end(const auto& ranks) {
  return std::ranges::all_of(ranks, [](const auto& rank) { return rank.gone || rank.said_end; });
}

}  // namespace

void AgentMachine::on_exit(AgentTime now, std::uint32_t pid, const ProcessEnd& end) {
  const auto known = pids_.find(pid);
  if (known == pids_.end()) return;
  const Place place = workers_.at(known->second);
  Attempt& attempt = attempts_.at(place.attempt);
  Rank& rank = attempt.ranks[place.rank];
  rank.gone = true;
  if (!rank.said_end && !rank.signalled) {
    Cause cause = exit_cause(end, place.rank);
    // It may have waited for one that is gone: NCCL ends a rank whose collective takes too long.
    if (const auto deserter = attempt.pace ? attempt.pace->deserter() : std::nullopt) {
      cause.text += fmt::format("; rank {} had ended in {}", deserter->rank, deserter->phase);
    }
    blame(now, attempt, std::move(cause));
  }
  pids_.erase(known);
  gone(now, rank);
  conclude_finished();
}

// Keeps the first cause and sees to it that every rank ends. An exception may be the echo of
// another rank's death that is noticed a moment later: then the death is the cause. One of the
// group may be the echo of another rank's own exception as well.
void AgentMachine::blame(AgentTime now, Attempt& attempt, Cause cause) {
  const bool exception = cause.outcome == Outcome::kException;
  const bool may_be_echo = attempt.cause && attempt.terminate_at &&
                           attempt.cause->outcome == Outcome::kException &&
                           attempt.cause->rank != cause.rank;
  const bool is_own = !exception || (attempt.cause && attempt.cause->is_of_group);
  const bool echoed = may_be_echo && is_own && !cause.is_of_group;
  const AgentTime settle = cause.is_of_group ? kEchoSettle : kSettle;
  if (!attempt.cause || echoed) attempt.cause = std::move(cause);
  if (attempt.kill_at) return;
  if (!exception) return terminate(now, attempt);
  const AgentTime by = now + (attempt.ranks.size() > 1 ? settle : kExitGrace);
  if (!attempt.terminate_at || by < *attempt.terminate_at) attempt.terminate_at = by;
}

// The function of a rank may return a moment before rank 0's does. It was too early when rank 0 has
// reported what that rank never will, or waited for it in a collective.
bool AgentMachine::blame_deserter(AgentTime now, Attempt& attempt) {
  if (!attempt.pace || (attempt.cause && !attempt.cause->is_of_group)) return false;
  const auto deserter = attempt.pace->deserter();
  if (!deserter || !(deserter->missed || attempt.cause)) return false;
  blame(now, attempt,
        {.outcome = Outcome::kException,
         .text = fmt::format("ended in {} before rank 0 did: all ranks must report equally often",
                             deserter->phase),
         .rank = deserter->rank});
  return true;
}

// It ends by no fault of its own.
void AgentMachine::lose(Attempt& attempt, std::string why) {
  if (attempt.cause || attempt.leader_outcome) return;
  attempt.cause = Cause{.outcome = Outcome::kLost, .text = std::move(why)};
}

// SIGTERM now, SIGKILL later. Ranks that were not asked for yet never will be.
void AgentMachine::terminate(AgentTime now, Attempt& attempt, AgentTime grace) {
  attempt.terminate_at.reset();
  attempt.stop_deadline.reset();
  if (attempt.ranks.size() > 1) grace = std::min(grace, kGroupGrace);
  if (!attempt.kill_at || *attempt.kill_at > now + grace) attempt.kill_at = now + grace;
  for (Rank& rank : attempt.ranks) {
    const auto request = requests_.find(rank.worker);
    if (request != requests_.end() && (!request->second || !zygote_alive_)) gone(now, rank);
  }
  signal(attempt, SIGTERM);
}

void AgentMachine::signal(Attempt& attempt, int signal) {
  for (Rank& rank : attempt.ranks) {
    if (rank.pid == 0 || rank.gone) continue;
    rank.signalled = true;
    act(SignalWorker{rank.pid, signal});
  }
}

void AgentMachine::gone(AgentTime now, Rank& rank) {
  const Place place = workers_.at(rank.worker);
  Attempt& attempt = attempts_.at(place.attempt);
  attempt.last_sign = now;
  if (attempt.pace) attempt.pace->on_ended(watched(now), place.rank);
  rank.gone = true;
  requests_.erase(rank.worker);
  workers_.erase(rank.worker);
  act(ForgetWorker{rank.worker});
  if (std::ranges::all_of(attempt.ranks, &Rank::gone)) finished_.push_back(place.attempt);
}

void AgentMachine::conclude_finished() {
  for (const std::uint64_t key : std::exchange(finished_, {})) {
    const auto found = attempts_.find(key);
    tell_held(found->second, ~std::uint64_t{0});
    act(ConcludeAttempt{verdict_on(found->second)});
    attempts_.erase(found);
  }
}

AttemptEnded AgentMachine::verdict_on(const Attempt& attempt) const {
  AttemptEnded ended;
  ended.trial = attempt.launch.trial;
  ended.attempt = attempt.launch.attempt;
  if (attempt.cause) {
    ended.outcome = attempt.cause->outcome;
    ended.rank = attempt.cause->rank;
    ended.code = attempt.cause->code;
    ended.cause = attempt.cause->text;
    return ended;
  }
  ended.outcome = attempt.leader_outcome.value_or(Outcome::kLost);
  if (ended.outcome == Outcome::kPaused && !attempt.saves.empty()) {
    ended.outcome = Outcome::kLost;
    ended.cause = fmt::format("only {} of {} ranks saved before they ended",
                              attempt.saves.rbegin()->second.ranks, attempt.ranks.size());
  } else if (ended.outcome == Outcome::kLost) {
    ended.cause = "it was told to pause but cannot be saved";
  }
  return ended;
}

// ---- Time ---------------------------------------------------------------------------------------

std::optional<AgentTime> AgentMachine::hang_deadline(const Attempt& attempt) const {
  // A report that is held waits for a rank, not for a verdict.
  const bool waits_for_driver = attempt.waiting && attempt.held.empty();
  if (!attempt.started || !reading_ || waits_for_driver || attempt.cause) return std::nullopt;
  const Duration limit = experiment_->hang_timeout;
  if (limit > Duration::zero() && !all_said_end(attempt.ranks)) return attempt.last_sign + limit;
  if (attempt.leader_outcome) return attempt.last_sign + kExitGrace;
  return std::nullopt;
}

// Blames a rank that others are ahead of. Otherwise rank 0, which all follow.
AgentMachine::Cause AgentMachine::hang_cause(const Attempt& attempt) const {
  const Duration limit = experiment_->hang_timeout;
  Cause cause{.outcome = Outcome::kHung, .rank = attempt.pace ? attempt.pace->hindmost() : 0};
  if (attempt.leader_outcome) {
    cause.text = fmt::format("did not end within {:g} s of rank 0, killed",
                             seconds(limit > Duration::zero() ? limit : Duration(kExitGrace)));
  } else {
    cause.text = fmt::format("no report for {:g} s (hang_timeout_s), killed", seconds(limit));
  }
  return cause;
}

std::optional<GroupPace::Awaited> AgentMachine::awaited(const Attempt& attempt) const {
  if (!attempt.pace || attempt.cause) return std::nullopt;
  if (experiment_->group_timeout == Duration::zero()) return std::nullopt;
  return attempt.pace->awaited(attempt.waiting || !reading_);
}

std::optional<AgentTime> AgentMachine::group_deadline(const Attempt& attempt) const {
  const auto laggard = awaited(attempt);
  if (!laggard) return std::nullopt;
  return next_look(laggard->since + experiment_->group_timeout + kGroupPatience);
}

AgentMachine::Cause AgentMachine::group_cause(const Attempt& attempt) const {
  const auto [rank, since, returned] = *awaited(attempt);
  const std::string phase = attempt.pace->phase_of(rank);
  const double limit = seconds(experiment_->group_timeout);
  const std::string what =
      returned
          ? fmt::format("ended in {}, which others have not finished {:g} s later", phase, limit)
      : phase.empty()
          ? fmt::format("did not tell the other ranks within {:g} s how to go on", limit)
          : fmt::format("did not finish {} within {:g} s of another rank", phase, limit);
  return {.outcome = Outcome::kHung, .text = what + " (group_timeout_s), killed", .rank = rank};
}

std::optional<AgentTime> AgentMachine::deadline(const Attempt& attempt) const {
  if (attempt.kill_at) return attempt.kill_at;
  std::optional<AgentTime> soonest = hang_deadline(attempt);
  earliest(soonest, group_deadline(attempt));
  earliest(soonest, attempt.terminate_at);
  earliest(soonest, attempt.stop_deadline);
  return soonest;
}

std::optional<AgentTime> AgentMachine::next_deadline() const {
  std::optional<AgentTime> soonest;
  if (zygote_due_) soonest = next_look(*zygote_due_);
  for (const auto& [key, attempt] : attempts_) earliest(soonest, deadline(attempt));
  return soonest;
}

void AgentMachine::on_time(AgentTime now) {
  watched_ = watched(now);
  last_turn_ = now;
  if (zygote_due_ && *zygote_due_ <= watched_) end_stuck_zygote();
  for (auto& [key, attempt] : attempts_) {
    const auto due = deadline(attempt);
    if (due && *due <= now) check_time(now, attempt);
  }
  conclude_finished();
}

void AgentMachine::check_time(AgentTime now, Attempt& attempt) {
  if (attempt.kill_at) {
    attempt.kill_at = now + kTermGrace;  // said again until it is heard
    return signal(attempt, SIGKILL);
  }
  if (attempt.terminate_at && *attempt.terminate_at <= now) return terminate(now, attempt);
  if (attempt.stop_deadline && *attempt.stop_deadline <= now) {
    if (!attempt.leader_outcome && !attempt.cause) {
      const bool pause = attempt.stop->kind == StopKind::kPause;
      lose(attempt, fmt::format("did not end within {:g} s of being told to {}, killed",
                                seconds(attempt.stop->grace), pause ? "pause" : "stop"));
      if (!pause) attempt.cause->outcome = Outcome::kStopped;
    }
    return terminate(now, attempt);
  }
  const auto group_due = group_deadline(attempt);
  if (group_due && *group_due <= now) {
    attempt.cause = group_cause(attempt);
  } else if (!all_said_end(attempt.ranks)) {
    attempt.cause = hang_cause(attempt);
  }
  attempt.kill_at = now + kTermGrace;
  signal(attempt, SIGKILL);
}

}  // namespace tune
