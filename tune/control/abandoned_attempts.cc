#include "tune/control/abandoned_attempts.h"

#include <algorithm>
#include <utility>

namespace tune {

void AbandonedAttempts::abandon(AgentNumber agent) {
  for (const TrialNumber number : state_.book.running()) {
    const Trial& trial = state_.book.at(number);
    const bool runs_there = std::ranges::count(agents_of(*trial.placement), agent) > 0;
    if (runs_there) state_.abandoned[agent].push_back({number, trial.attempt});
  }
}

// A number that was given with the end of the journal is not given again.
void AbandonedAttempts::await_ends(AgentNumber agent, std::vector<LiveAttempt> unknown) {
  for (const LiveAttempt& one : unknown) {
    if (one.trial >= state_.book.next_number()) continue;
    Trial& trial = state_.book.at(one.trial);
    if (trial.status != TrialStatus::kRunning) {
      trial.attempt = std::max(trial.attempt, one.attempt);
    }
  }
  state_.abandoned[agent] = std::move(unknown);
}

bool AbandonedAttempts::ended(AgentNumber agent, const AttemptEnded& ended) {
  const auto found = state_.abandoned.find(agent);
  if (found == state_.abandoned.end() || !state_.nodes.contains(agent)) return false;
  const auto removed = std::erase_if(found->second, [&](const LiveAttempt& one) {
    return one.trial == ended.trial && one.attempt == ended.attempt;
  });
  if (removed == 0) return false;
  settle(LiveAttempt{ended.trial, ended.attempt});
  if (!found->second.empty()) return false;
  state_.abandoned.erase(found);
  state_.nodes.set_back(agent);
  return true;
}

void AbandonedAttempts::settle(AgentNumber agent) {
  const auto found = state_.abandoned.find(agent);
  if (found == state_.abandoned.end()) return;
  for (const LiveAttempt& one : found->second) settle(one);
  state_.abandoned.erase(found);
}

void AbandonedAttempts::settle_all() {
  while (!state_.abandoned.empty()) settle(state_.abandoned.begin()->first);
}

void AbandonedAttempts::settle(const LiveAttempt& one) {
  if (one.trial >= state_.book.next_number()) return;
  const Trial& trial = state_.book.at(one.trial);
  const bool runs_anew = trial.status == TrialStatus::kRunning && trial.attempt <= one.attempt;
  if (!runs_anew) state_.out.settle(one.trial, one.attempt);
}

}  // namespace tune
