#include "tune/control/trial_moves.h"

namespace tune {

void TrialMoves::wait_again(Trial& trial) {
  if (trial.verdict == StopKind::kLeave) trial.verdict.reset();  // it has left
  state_.book.set_status(trial, TrialStatus::kPending);
  const Owed owed = Verdicts::owed(trial);
  if (owed == Owed::kCompletion) return finish(trial, TrialEnd::kCompleted);
  if (owed == Owed::kStop || trial.wish == Wish::kStop) return finish(trial, TrialEnd::kStopped);
  if (trial.wish == Wish::kPause) return hold(trial);
  if (owed == Owed::kPause) pause(trial);
}

void TrialMoves::pause(Trial& trial) {
  if (trial.wish == Wish::kPause) return hold(trial);
  state_.book.pause(trial);
  const bool is_as_proposed = trial.replacements == 0;
  if (trial.paused_by_scheduler && is_as_proposed) state_.searcher.pause_trial(trial.number);
}

void TrialMoves::hold(Trial& trial) {
  // Its second try may never come.
  if (state_.driver.forgets_held) state_.health.forget(trial.number);
  // For the searcher it goes on: what its scheduler has paused is known to be kept back.
  const bool is_known_as_paused = trial.status == TrialStatus::kPaused && trial.replacements == 0;
  if (is_known_as_paused) state_.searcher.resume_trial(trial.number);
  state_.verdicts.end(trial, TrialEnd::kError);
  state_.book.hold(trial);
}

void TrialMoves::let_go(Trial& trial) {
  trial.until = state_.verdicts.begin(trial.number, trial.config);
  state_.book.release(trial);
}

void TrialMoves::resume(Trial& trial) {
  const std::optional<ResumedAs> as = state_.verdicts.resume(trial);
  if (as && !take_over(trial, *as)) say_once_that_nothing_is_replaced();
  if (trial.replacements == 0) state_.searcher.resume_trial(trial.number);
}

void TrialMoves::finish(Trial& trial, TrialEnd end) {
  state_.health.forget(trial.number);
  trial.was_stopped = end == TrialEnd::kStopped;
  if (state_.book.held().contains(trial.number)) {
    trial.verdict.reset();  // it has left its scheduler
  } else {
    state_.verdicts.end(trial, end);
  }
  if (trial.replacements == 0) {
    state_.searcher.end_trial(trial.number, end, trial.last ? &*trial.last : nullptr);
    if (trial.is_added) state_.searcher.end_added(trial, end);
  }
  const bool is_error = end == TrialEnd::kError;
  const bool may_go_on = trial.was_stopped && state_.driver.keeps_origins;
  state_.book.finish(trial, is_error ? TrialStatus::kError : TrialStatus::kTerminated, may_go_on);
}

void TrialMoves::revive(Trial& trial) {
  trial.failures = 0;
  trial.until = state_.verdicts.begin(trial.number, trial.config);
  if (trial.replacements == 0) state_.searcher.resume_trial(trial.number);
}

void TrialMoves::take_up(bool retry_errored) {
  for (const Trial& one : state_.book.all()) {
    Trial& trial = state_.book.at(one.number);
    const bool interrupted = trial.status == TrialStatus::kPaused && !trial.paused_by_scheduler &&
                             trial.wish != Wish::kPause;
    const bool again = trial.status == TrialStatus::kError && retry_errored;
    if (again) revive(trial);
    if (interrupted || again) wait_again(trial);
  }
}

// The attempt leaves its state at once, and the next one begins with the other; until then the
// trial is as if that state had been restored and lost again.
std::optional<Command> TrialMoves::replace(Trial& trial, const ResumedAs& as, bool waiting) {
  const bool is_other = as.by.donor != trial.number;
  if (is_other && take_over(trial, as)) {
    trial.verdict = StopKind::kLeave;
    return StopAttempt{trial.number, trial.attempt, StopKind::kLeave, {}};
  }
  say_once_that_nothing_is_replaced();
  if (!waiting) return std::nullopt;
  return Continue{trial.number, trial.attempt, trial.until};
}

// For the searcher the trial ends here: the values that follow are not those that it proposed.
bool TrialMoves::take_over(Trial& trial, const ResumedAs& as) {
  if (!state_.book.replace(trial, as.by.donor, pack(as.by.config), as.reason)) return false;
  if (trial.replacements == 1) {
    state_.searcher.end_trial(trial.number, TrialEnd::kStopped, &*trial.last);
  }
  return true;
}

void TrialMoves::say_once_that_nothing_is_replaced() {
  state_.course.warn(
      "the scheduler lets a trial go on from another one that has no checkpoint: such a trial goes "
      "on as it is");
}

}  // namespace tune
