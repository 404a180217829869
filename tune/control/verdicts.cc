#include "tune/control/verdicts.h"

#include "tune/control/trial_book.h"

namespace tune {

namespace {

StopAttempt stop_command(const Trial& trial) {
  return {trial.number, trial.attempt, *trial.verdict, {}};
}

Continue continue_command(const Trial& trial) {
  return {trial.number, trial.attempt, trial.until};
}

}  // namespace

Verdicts::Ruling Verdicts::rule(Trial& trial, const Reported& report) {
  if (report.iteration <= trial.judged) return repeat(trial, report);
  // A last result is not judged. Done again it may not be the last: its time may not be up then.
  if (report.final) return {true, std::nullopt, true, std::nullopt};
  trial.judged = report.iteration;
  const Decision decision = scheduler_->result(trial.number, report);
  const bool stops = decision.kind == Decision::Kind::kStop;
  Ruling ruling{stops, apply(trial, decision, report.waiting), true, std::nullopt};
  if (decision.kind != Decision::Kind::kContinue) ruling.given = trial.verdict;
  return ruling;
}

// A step done again after a restore gets the verdict that was given the first time.
Verdicts::Ruling Verdicts::repeat(const Trial& trial, const Reported& report) {
  const bool stopped = report.iteration == trial.judged && trial.verdict == StopKind::kStop;
  Ruling ruling{report.final || stopped, std::nullopt, false, std::nullopt};
  if (!report.waiting) return ruling;
  if (trial.verdict) {
    ruling.answer = stop_command(trial);
  } else {
    ruling.answer = continue_command(trial);
  }
  return ruling;
}

std::optional<Command> Verdicts::apply(Trial& trial, const Decision& decision, bool waiting) {
  if (decision.kind == Decision::Kind::kContinue) {
    trial.until = decision.until;
    if (!waiting) return std::nullopt;
    return continue_command(trial);
  }
  const bool pauses = decision.kind == Decision::Kind::kPause;
  trial.verdict = pauses ? StopKind::kPause : StopKind::kStop;
  trial.reason = decision.reason;
  return stop_command(trial);
}

Owed Verdicts::owed(const Trial& trial) {
  if (!is_saved_to_the_end(trial)) return Owed::kNothing;
  if (trial.last->final) return Owed::kCompletion;
  if (trial.last->iteration != trial.judged || !trial.verdict) return Owed::kNothing;
  return *trial.verdict == StopKind::kStop ? Owed::kStop : Owed::kPause;
}

void Verdicts::end(Trial& trial, TrialEnd end) {
  trial.verdict.reset();
  scheduler_->end_trial(trial.number, end, trial.last ? &*trial.last : nullptr);
}

}  // namespace tune
