#include "tune/control/attempt_end.h"

namespace tune {

Ending ending_of(const Trial& trial, Outcome outcome, Leaving leaving, bool is_of_node) {
  if (trial.wish == Wish::kStop && outcome != Outcome::kCompleted) return Ending::kStopped;
  if (trial.verdict == StopKind::kLeave) {
    return leaving == Leaving::kForGood ? Ending::kStopped : Ending::kReplaced;
  }
  if (outcome == Outcome::kCompleted) return Ending::kCompleted;
  const bool is_stopped = outcome == Outcome::kStopped || trial.verdict == StopKind::kStop;
  if (is_stopped || leaving == Leaving::kForGood) {
    // A trial that failed while it carried out a stop is tried again up to there: the verdict
    // stands.
    const bool fails = is_failure(outcome) && leaving != Leaving::kForGood;
    return fails ? Ending::kFailed : Ending::kStopped;
  }
  // Only a node that its agent leaves pauses a trial by itself: the trial goes on elsewhere.
  const bool is_told = leaving == Leaving::kForNow || trial.verdict == StopKind::kPause ||
                       trial.wish == Wish::kPause;
  if (outcome == Outcome::kPaused) return is_told ? Ending::kPaused : Ending::kLost;
  if (leaving == Leaving::kForNow) return Ending::kLost;
  if (outcome != Outcome::kLost) return Ending::kFailed;
  // Only an attempt that got to the judged result was told to pause.
  const bool was_told = trial.last && trial.last->iteration == trial.judged;
  const bool cannot_pause = was_told && !is_of_node && trial.verdict == StopKind::kPause;
  return cannot_pause ? Ending::kCannotPause : Ending::kLost;
}

}  // namespace tune
