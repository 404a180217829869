#include "tune/control/verdicts.h"

#include <utility>

#include "tune/control/trial_book.h"

namespace tune {

namespace {

StopAttempt stop_command(const Trial& trial) {
  return {trial.number, trial.attempt, *trial.verdict, {}};
}

}  // namespace

Milestone Verdicts::begin(TrialNumber trial, const Packed& config) {
  scheduler_->take_config(trial, config);
  return scheduler_->add_trial(trial);
}

std::optional<ResumedAs> Verdicts::resume(Trial& trial) {
  trial.until = scheduler_->resume_trial(trial.number);
  return scheduler_->resumed_as(trial.number);
}

Verdicts::Ruling Verdicts::rule(Trial& trial, const Reported& report, bool others_wait) {
  const bool is_over = trial.verdict == StopKind::kStop;
  if (report.iteration <= trial.judged || is_over) return repeat(trial, report);
  // A last result is not judged. Done again, the step may not be the last: the trial's time may not
  // be up then.
  if (report.final) return {true, std::nullopt, true, std::nullopt};
  trial.judged = report.iteration;
  trial.saves_first = false;
  Decision decision = scheduler_->result(trial.number, report);
  if (decision.kind == Decision::Kind::kContinue && decision.yields && others_wait) {
    decision = Decision::pause("other trials wait for room: each trains in its turn");
  }
  Ruling ruling{decision.kind == Decision::Kind::kStop, std::nullopt, true, std::nullopt};
  ruling.place = decision.place;
  ruling.kind = decision.kind;
  apply(trial, decision, report.waiting, ruling);
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

std::optional<Command> Verdicts::say_again(const Trial& trial) {
  if (!trial.last || trial.last->attempt != trial.attempt) return std::nullopt;
  const bool is_there = trial.last->iteration >= trial.judged && !trial.last->final;
  if (trial.verdict && is_there) return stop_command(trial);
  std::optional<Command> answer = repeat(trial, *trial.last).answer;
  if (auto* go = answer ? std::get_if<Continue>(&*answer) : nullptr) go->save = trial.saves_first;
  return answer;
}

Milestone Verdicts::until(const Trial& trial) {
  if (!trial.verdict) return trial.until;
  return {"training_iteration", static_cast<double>(trial.judged)};
}

void Verdicts::apply(Trial& trial, Decision& decision, bool waiting, Ruling& ruling) {
  switch (decision.kind) {
    case Decision::Kind::kContinue:
      trial.until = decision.until;
      trial.saves_first = waiting && decision.save;
      if (waiting)
        ruling.answer = Continue{trial.number, trial.attempt, trial.until, decision.save};
      return;
    case Decision::Kind::kReplace:
      trial.until = decision.until;
      ruling.replaced = {std::move(*decision.replacement), std::move(decision.reason)};
      return;
    case Decision::Kind::kPause:
    case Decision::Kind::kStop:
      break;
  }
  const bool pauses = decision.kind == Decision::Kind::kPause;
  trial.verdict = pauses ? StopKind::kPause : StopKind::kStop;
  trial.reason = std::move(decision.reason);
  ruling.answer = stop_command(trial);
  ruling.given = trial.verdict;
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
