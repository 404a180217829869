#include "tune/control/running_attempts.h"

#include <algorithm>
#include <utility>

#include "core/trial.h"

namespace tune {

bool RunningAttempts::ended(AgentNumber agent, const AttemptEnded& ended) {
  if (Trial* trial = state_.book.current(agent, ended.trial, ended.attempt)) {
    evidence_.did_not_meet(*trial, ended);
    Placement& placement = *trial->placement;
    state_.nodes.release_part(placement.lead(), placement.nodes);
    placement.lead_has_ended = true;
    state_.ended[trial->number] = {ended};
    end_what_is_left(*trial);
    return true;
  }
  if (Trial* trial = state_.book.current_part(agent, ended.trial, ended.attempt)) {
    part_has_ended(*trial, agent, ended);
    return true;
  }
  return false;
}

// A node that ends its part in good order leaves the rest to the lead.
void RunningAttempts::part_has_ended(Trial& trial, AgentNumber agent, const AttemptEnded& ended) {
  evidence_.did_not_meet(trial, ended);
  Placement& placement = *trial.placement;
  const auto part = std::ranges::find(placement.others, agent, &PlacementPart::agent);
  state_.nodes.release_part(*part, placement.nodes);
  placement.others.erase(part);
  if (placement.lead_has_ended || ended.outcome == Outcome::kLost) end_what_is_left(trial);
}

void RunningAttempts::lose_all(const std::set<AgentNumber>& of, const std::string& cause) {
  for (TrialNumber number : std::set(state_.book.running())) {
    lose_parts(state_.book.at(number), of, cause);
  }
}

void RunningAttempts::lose_parts(Trial& trial, const std::set<AgentNumber>& of,
                                 const std::string& cause) {
  Placement& placement = *trial.placement;
  const bool loses_lead = !placement.lead_has_ended && of.contains(placement.agent);
  const auto is_lost = [&](const PlacementPart& part) { return of.contains(part.agent); };
  for (const PlacementPart& part : placement.others) {
    if (is_lost(part)) state_.nodes.release_part(part, placement.nodes);
  }
  const bool loses_others = std::erase_if(placement.others, is_lost) > 0;
  if (loses_lead) {
    state_.nodes.release_part(placement.lead(), placement.nodes);
    placement.lead_has_ended = true;
    AttemptEnded lost{trial.number, trial.attempt, Outcome::kLost, 0, 0, cause, {}, true};
    state_.ended[trial.number] = {std::move(lost), true};
  }
  if (loses_lead || loses_others) end_what_is_left(trial);
}

void RunningAttempts::end_what_is_left(Trial& trial) {
  const Placement& placement = *trial.placement;
  const KillAttempt kill{trial.number, trial.attempt};
  if (!placement.lead_has_ended) return state_.out.send(placement.agent, kill);
  if (placement.others.empty()) return conclude(trial);
  for (const PlacementPart& part : placement.others) state_.out.send(part.agent, kill);
}

bool RunningAttempts::freed(AgentNumber agent, const PlaceFree& free) {
  if (has_freed_most(agent)) return false;
  if (Trial* trial = state_.book.current(agent, free.trial, free.attempt)) {
    Placement& placement = *trial->placement;
    state_.nodes.release_part(placement.lead(), placement.nodes);
    placement.lead_is_free = true;
    return true;
  }
  if (Trial* trial = state_.book.current_part(agent, free.trial, free.attempt)) {
    Placement& placement = *trial->placement;
    const auto part = std::ranges::find(placement.others, agent, &PlacementPart::agent);
    state_.nodes.release_part(*part, placement.nodes);
    part->is_free = true;
    return true;
  }
  return false;
}

bool RunningAttempts::has_freed_most(AgentNumber agent) const {
  const auto is_free = [&](TrialNumber number) {
    const Placement& placement = *state_.book.at(number).placement;
    const auto is_there = [&](const PlacementPart& part) {
      return part.is_free && part.agent == agent;
    };
    const bool leads = !placement.lead_has_ended && is_there(placement.lead());
    return leads || std::ranges::any_of(placement.others, is_there);
  };
  return std::ranges::count_if(state_.book.running(), is_free) >= Nodes::kMostFree;
}

// ---- What follows for the trial

// The attempt is over on every node, and each has its resources again.
void RunningAttempts::conclude(Trial& trial) {
  const auto [ended, is_lost] = std::move(state_.ended.extract(trial.number).mapped());
  // Parts of a checkpoint that was never whole may be left.
  if (trial.placement->nodes > 1) state_.out.settle(trial.number, trial.attempt);
  if (is_lost) return lose(trial, ended.cause);
  const Phase phase = state_.course.phase();
  const Leaving leaving = phase == Phase::kInterrupting ? Leaving::kForNow
                          : phase == Phase::kEnding     ? Leaving::kForGood
                                                        : Leaving::kNo;
  const Ending ending = ending_of(trial, ended.outcome, leaving, ended.is_of_node);
  evidence_.ended(trial, ending);
  if (ending == Ending::kCannotPause) {
    AttemptEnded failure = ended;
    failure.outcome = Outcome::kException;
    failure.cause = "the scheduler paused the trial, but it cannot save";
    conclude(trial, Ending::kFailed, failure);
  } else {
    conclude(trial, ending, ended);
  }
}

void RunningAttempts::conclude(Trial& trial, Ending ending, const AttemptEnded& ended) {
  state_.out.tell(AttemptOver{trial, ended});
  state_.asking.attempt_ended(trial.number, state_.now);
  state_.unanswered.erase(trial.number);
  const bool elsewhere = ending == Ending::kFailed && evidence_.tries_elsewhere(trial);
  // A node of an older build keeps the checkpoints of paused trials alone, and does not say so.
  const bool is_kept =
      state_.driver.agent_contract >= kKeepsCheckpoints &&
      (ending == Ending::kPaused || (ending == Ending::kFailed && ended.is_kept)) &&
      trial.placement->nodes == 1 && state_.nodes.carries(trial.placement->agent);
  trial.home.reset();
  if (is_kept) trial.home = trial.placement->agent;
  trial.placement.reset();
  switch (ending) {
    case Ending::kCompleted:
      return moves_.finish(trial, TrialEnd::kCompleted);
    case Ending::kStopped:
      return moves_.finish(trial, TrialEnd::kStopped);
    case Ending::kPaused:
      return moves_.pause(trial);
    case Ending::kLost:
    case Ending::kReplaced:
      return moves_.wait_again(trial);
    case Ending::kFailed:
    case Ending::kCannotPause:
      return fail(trial, ended, elsewhere);
  }
}

void RunningAttempts::lose(Trial& trial, const std::string& cause) {
  const AttemptEnded lost{trial.number, trial.attempt, Outcome::kLost, 0, 0, cause, {}, true};
  state_.out.tell(AttemptOver{trial, lost});
  state_.asking.attempt_lost(trial.number);
  evidence_.ended(trial, Ending::kLost);
  state_.out.settle(trial.number, trial.attempt);
  trial.placement.reset();
  state_.unanswered.erase(trial.number);
  moves_.wait_again(trial);
}

void RunningAttempts::fail(Trial& trial, const AttemptEnded& ended, bool elsewhere) {
  if (!elsewhere) ++trial.failures;
  trial.failure =
      Failure{ended.attempt, ended.outcome, ended.rank, ended.code, ended.cause, ended.stderr_tail};
  const bool retried = elsewhere || trial.failures <= state_.driver.max_failures;
  if (retried) {
    moves_.wait_again(trial);
  } else {
    moves_.finish(trial, TrialEnd::kError);
  }
  state_.out.tell(AttemptFailed{trial, retried});
  if (is_over(trial.status)) TrialBook::shorten_failure(trial);
  if (!retried && state_.setup.fail_fast && state_.course.is_running()) {
    state_.out.notice("a trial failed and fail_fast is set: running trials save and end");
    end_.stop_running(StopKind::kStop, Phase::kEnding);
  }
}

}  // namespace tune
