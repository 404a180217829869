#include "trainables/worker_machine.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/result_view.h"
#include "core/wire.h"

namespace tune {
namespace {

// `done: true`, not any other value of that name.
bool says_done(const Packed& result) try {
  PackReader in(result.bytes);
  for (std::size_t left = in.map(); left > 0; --left) {
    if (in.text() == "done") return in.peek() == PackReader::Type::kBool && in.boolean();
    in.skip();
  }
  return false;
} catch (const Error&) {
  return false;  // no map
}

}  // namespace

WorkerMachine::WorkerMachine(const StartWorker& start)
    : start_(start),
      iteration_(start.launch.restore_iteration),
      saved_(start.launch.restore_iteration),
      until_(start.launch.until),
      time_total_(start.launch.time_total) {
  if (start.launch.timesteps_total != 0) timesteps_total_ = start.launch.timesteps_total;
}

// ---- The way to the first step ------------------------------------------------------------------

void WorkerMachine::on_set_up() {
  say_done();
}

void WorkerMachine::on_ready() {
  say_done();
  await_word();  // a stop may be there already
}

// A rank alone does not report its phases.
void WorkerMachine::say_done() {
  if (is_in_group()) say(PhaseDone{});
}

// ---- The end of a step --------------------------------------------------------------------------

void WorkerMachine::on_report(Time now, Packed result, bool can_save) {
  if (is_refused()) return;
  if (outcome_) {
    say(last_word());
    return act(ExitWorker{});
  }
  ++iteration_;
  can_save_ = can_save;
  if (leads()) return lead(now, std::move(result));
  say_done();
  await_word();
}

bool WorkerMachine::is_refused() {
  if (failure_) act(*failure_);
  return failure_.has_value();
}

void WorkerMachine::lead(Time now, Packed result) {
  Reported report = make_report(now, std::move(result));
  const bool is_last = report.final;
  waits_ = report.waiting;
  say(std::move(report));
  const CheckpointPolicy& policy = start_.experiment.checkpoint;
  if (is_last) return save_and_end(Outcome::kCompleted, policy.at_end);
  if (policy.frequency == 0 || iteration_ % policy.frequency != 0) return await_word();
  if (!can_save_ && !std::exchange(save_was_missed_, true)) {
    say(Warning{fmt::format(
        "checkpoint frequency is {}, but results are reported without a save: give one to "
        "session.report, or no checkpoint is written",
        policy.frequency)});
  }
  save();
}

Reported WorkerMachine::make_report(Time now, Packed result) {
  const Duration step = now - step_began_;
  time_total_ += step;
  time_since_restore_ += step;
  if (const auto more = find_number(result, "timesteps_this_iter")) {
    timesteps_total_ = timesteps_total_.value_or(0) + *more;
  }
  Reported report;
  report.trial = start_.launch.trial;
  report.attempt = start_.launch.attempt;
  report.iteration = iteration_;
  report.time_this_iter = step;
  report.time_total = time_total_;
  report.time_since_restore = time_since_restore_;
  report.iterations_since_restore = iteration_ - start_.launch.restore_iteration;
  report.timesteps_total = timesteps_total_;
  report.result = std::move(result);
  const WorkerExperiment& experiment = start_.experiment;
  report.final =
      says_done(report.result) || ends_trial(report, experiment.stop, experiment.max_trial_time);
  report.waiting = !report.final && reaches(report, until_);
  return report;
}

// ---- Words of the agent -------------------------------------------------------------------------

// Rank 0 waits for the verdict on its report and while it is held; other ranks wait for rank 0's
// word.
void WorkerMachine::await_word() {
  act(ListenToAgent{!leads() || waits_ || is_held_});
}

void WorkerMachine::on_command(const WorkerCommand& command) {
  if (const auto* word = std::get_if<GroupStep>(&command); word != nullptr && !leads()) {
    return heed(*word);
  }
  const auto* go = std::get_if<Continue>(&command);
  const auto* hold = std::get_if<HoldGroup>(&command);
  const auto* stop = std::get_if<StopAttempt>(&command);
  if (!leads() || (go == nullptr && hold == nullptr && stop == nullptr)) {
    return fail("the agent sent a command that does not fit a step boundary");
  }
  if (stop != nullptr) {
    const bool pauses = stop->kind == StopKind::kPause;
    const bool stops = stop->kind == StopKind::kStop;
    return save_and_end(pauses ? Outcome::kPaused : Outcome::kStopped,
                        pauses || (stops && start_.experiment.checkpoint.at_end));
  }
  if (hold != nullptr) is_held_ = hold->hold;
  if (go != nullptr) {
    until_ = go->until;
    waits_ = false;
    if (go->save) return save_as_asked();
  }
  await_word();
}

// Rank r > 0: follows rank 0's words until a step or the end.
void WorkerMachine::heed(const GroupStep& word) {
  switch (word.action) {
    case GroupAction::kSave:
      return act(WriteCheckpoint{iteration_});
    case GroupAction::kEnd:
      ending_ = Outcome::kCompleted;
      return end();
    case GroupAction::kStep:
      break;
  }
  if (word.iteration == iteration_ + 1) return act(BeginStep{});
  fail(fmt::format(
      "rank {} has done {} steps when rank 0 begins step {}: all ranks must report equally often",
      start_.rank, iteration_, word.iteration));
}

// The agent has nothing against the next step.
void WorkerMachine::on_silence(Time now) {
  // A rank alone announces its first step, as a sign of life.
  const bool shows_life = !has_begun_ && start_.experiment.hang_timeout > Duration::zero();
  if (is_in_group() || shows_life) say(GroupStep{iteration_ + 1, GroupAction::kStep});
  has_begun_ = true;
  step_began_ = now;
  act(BeginStep{});
}

// ---- Checkpoints --------------------------------------------------------------------------------

// Rank 0: saves a checkpoint of this iteration on all ranks, unless there is one or it cannot be
// saved.
void WorkerMachine::save() {
  if (!can_save_ || saved_ == iteration_) return saved_or_not();
  act(PrepareCheckpoint{iteration_});
  if (is_in_group()) say(GroupStep{iteration_, GroupAction::kSave});
  act(WriteCheckpoint{iteration_});
}

void WorkerMachine::save_as_asked() {
  const bool is_missed = iteration_ > start_.launch.restore_iteration && !can_save_;
  if (is_missed && !std::exchange(save_was_missed_, true)) {
    say(Warning{
        "the scheduler asks for a checkpoint, but results are reported without a save: give one to "
        "session.report, or no trial can go on from another one's"});
  }
  save();
}

void WorkerMachine::on_saved() {
  saved_ = iteration_;
  say(saved());
  saved_or_not();
}

void WorkerMachine::on_copied() {
  saved_ = iteration_;
  say(RankCopied{iteration_});
  act(WriteBeside{saved()});
  saved_or_not();
}

void WorkerMachine::saved_or_not() {
  ending_ ? end() : await_word();
}

// ---- The end ------------------------------------------------------------------------------------

void WorkerMachine::save_and_end(Outcome outcome, bool wants_save) {
  ending_ = outcome;
  wants_save ? save() : end();
}

void WorkerMachine::end() {
  const bool is_safe = saved_ > 0 && saved_ == iteration_;
  outcome_ = *ending_ == Outcome::kPaused && !is_safe ? Outcome::kLost : *ending_;
  if (leads() && is_in_group()) say(GroupStep{iteration_, GroupAction::kEnd});
  act(LeaveAttempt{});
}

void WorkerMachine::on_returned() {
  if (is_refused()) return;
  if (outcome_) return act(LeaveAttempt{});
  ending_ = Outcome::kCompleted;
  end();
}

void WorkerMachine::on_failed(std::string cause, bool is_of_group) {
  actions_.clear();
  if (!failure_) failure_ = FailAttempt{std::move(cause), is_of_group};
}

void WorkerMachine::fail(std::string cause) {
  failure_ = FailAttempt{std::move(cause), false};
  act(*failure_);
}

WorkerEnded WorkerMachine::last_word() const {
  return {outcome_.value_or(Outcome::kCompleted), {}};
}

}  // namespace tune
