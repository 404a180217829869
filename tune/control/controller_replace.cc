// Trials that go on from another trial's checkpoint with other values.
#include "tune/control/controller.h"

namespace tune {

// Trials that are still to be drawn wait as well.
bool Controller::others_wait() const {
  return !book_.waiting().empty() || !book_.paused().empty() || has_more();
}

// One that the scheduler has paused, and perhaps with the state and values of another.
void Controller::resume(Trial& trial) {
  const std::optional<ResumedAs> as = verdicts_.resume(trial);
  if (as && !take_over(trial, *as)) say_once_that_nothing_is_replaced();
  if (trial.replacements == 0) searcher_->resume_trial(trial.number);
}

// For the searcher the trial ends here: the values that follow are not those that it proposed.
bool Controller::take_over(Trial& trial, const ResumedAs& as) {
  if (!book_.replace(trial, as.by.donor, pack(as.by.config), as.reason)) return false;
  if (trial.replacements == 1) {
    searcher_->end_trial(trial.number, TrialEnd::kStopped, &*trial.last);
  }
  return true;
}

// The answer to the trial's agent. The attempt leaves its state at once, and the next one begins
// with the other; until then the trial is as if that state had been restored and lost again.
std::optional<Command> Controller::replace(Trial& trial, const ResumedAs& as, bool waiting) {
  const bool is_other = as.by.donor != trial.number;
  if (is_other && take_over(trial, as)) {
    trial.verdict = StopKind::kLeave;
    return StopAttempt{trial.number, trial.attempt, StopKind::kLeave, {}};
  }
  say_once_that_nothing_is_replaced();
  if (!waiting) return std::nullopt;
  return Continue{trial.number, trial.attempt, trial.until};
}

void Controller::say_once_that_nothing_is_replaced() {
  warn(
      "the scheduler lets a trial go on from another one that has no checkpoint: such a trial goes "
      "on as it is");
}

}  // namespace tune
