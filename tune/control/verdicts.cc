#include "tune/control/verdicts.h"

#include "tune/control/trial_book.h"

namespace tune {

namespace {

StopAttempt stop_command(const Trial& trial) {
  return {trial.number, trial.attempt, *trial.verdict, {}};
}

}  // namespace

Verdicts::Ruling Verdicts::rule(Trial& trial, const Reported& report) {
  const bool is_over = trial.verdict == StopKind::kStop;
  if (report.iteration <= trial.judged || is_over) return repeat(trial, report);
  // A last result is not judged. Done again, the step may not be the last: the trial's time may not
  // be up then.
  if (report.final) return {true, std::nullopt, true, std::nullopt};
  trial.judged = report.iteration;
  const Decision decision = scheduler_->result(trial.number, report);
  const bool stops = decision.kind == Decision::Kind::kStop;
  Ruling ruling{stops, apply(trial, decision, report.waiting), true, std::nullopt};
  if (decision.kind != Decision::Kind::kContinue) ruling.given = trial.verdict;
  return ruling;
}

// A step that is done again after a restore gets its first verdict, whether the worker waits there
// or not.
Verdicts::Ruling Verdicts::repeat(const Trial& trial, const Reported& report) {
  const bool is_there = report.iteration >= trial.judged;
  const bool stopped = is_there && trial.verdict == StopKind::kStop;
  Ruling ruling{report.final || stopped, std::nullopt, false, std::nullopt};
  if (report.final) return ruling;
  if (is_there && trial.verdict && (report.waiting || report.iteration == trial.judged)) {
    ruling.answer = stop_command(trial);
  } else if (report.waiting) {
    ruling.answer = Continue{trial.number, trial.attempt, until(trial)};
  }
  return ruling;
}

Milestone Verdicts::until(const Trial& trial) {
  if (!trial.verdict) return trial.until;
  return {"training_iteration", static_cast<double>(trial.judged)};
}

std::optional<Command> Verdicts::apply(Trial& trial, const Decision& decision, bool waiting) {
  if (decision.kind == Decision::Kind::kContinue) {
    trial.until = decision.until;
    if (!waiting) return std::nullopt;
    return Continue{trial.number, trial.attempt, trial.until};
  }
  const bool pauses = decision.kind == Decision::Kind::kPause;
  trial.verdict = pauses ? StopKind::kPause : StopKind::kStop;
  trial.reason = decision.reason;
  return stop_command(trial);
}

Owed Verdicts::owed(const Trial& trial) {
  if (!is_saved_to_the_end(trial)) return Owed::kNothing;
  if (trial.last->final) return Owed::kCompletion;
  if (trial.last->iteration < trial.judged || !trial.verdict) return Owed::kNothing;
  return *trial.verdict == StopKind::kStop ? Owed::kStop : Owed::kPause;
}

void Verdicts::end(Trial& trial, TrialEnd end) {
  // A stopped trial that failed while it stopped, and is tried again, only has to stop.
  const bool stands = end == TrialEnd::kError && trial.verdict == StopKind::kStop;
  if (!stands) trial.verdict.reset();
  scheduler_->end_trial(trial.number, end, trial.last ? &*trial.last : nullptr);
}

}  // namespace tune
