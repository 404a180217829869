#include "simulator/simulated_worker.h"

#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "simulator/violation.h"

namespace tune::simulator {

using std::chrono::microseconds;

AttemptFault draw_fault(const Scenario& scenario, const Launch& launch) {
  RandomStream random(scenario.seed, "fault", attempt_key(launch.trial, launch.attempt));
  const auto chance = [&](std::uint32_t rate) { return random.integer(0, 1'000'000) < rate; };
  AttemptFault fault;
  fault.ignores_term = chance(scenario.rates.term_ignored);
  if (!chance(scenario.rates.attempt_fails)) return fault;
  fault.kind = static_cast<AttemptFault::Kind>(
      random.integer(1, static_cast<int>(AttemptFault::Kind::kLast) + 1));
  fault.rank = static_cast<std::uint32_t>(random.integer(0, launch.ranks));
  fault.iteration = static_cast<std::uint64_t>(
      random.integer(1, static_cast<std::int64_t>(scenario.iterations) + 1));
  return fault;
}

SimulatedWorker::SimulatedWorker(World& world, std::uint32_t pid, Agent agent)
    : world_(world), pid_(pid), agent_(std::move(agent)) {}

void SimulatedWorker::later(Time delay, Next next) {
  world_.queue.after(delay, life_, std::move(next));
}

bool SimulatedWorker::fails(AttemptFault::Kind kind) const {
  return fault_.kind == kind && fault_.rank == start_->rank;
}

// ---- What it is told
// ------------------------------------------------------------------------------

void SimulatedWorker::hear(WorkerCommand command) {
  if (ended_) return;
  if (const auto* start = std::get_if<StartWorker>(&command)) return on(*start);
  check_verdict(command);
  commands_.push_back(std::move(command));
  if (waits_ == Waits::kForVerdict || held_) take_verdict();
  if (waits_ == Waits::kForWord) follow();
}

void SimulatedWorker::check_verdict(const WorkerCommand& command) const {
  const auto verdict = verdict_of(command);
  if (!verdict) return;
  const Launch& launch = start_->launch;
  const bool is_own = verdict->first == attempt_key(launch.trial, launch.attempt);
  const auto said = world_.verdicts.find(verdict->first);
  if (is_own && said != world_.verdicts.end() && said->second.contains(verdict->second)) return;
  violate("a worker hears the verdicts of its own attempt",
          fmt::format("attempt {} of trial {} hears one that no driver gave it",
                      launch.attempt.value, launch.trial.value));
}

void SimulatedWorker::signal(int signal) {
  if (ended_ || (signal == SIGTERM && ignores_term_)) return;
  const char* name = signal == SIGTERM ? "SIGTERM" : "SIGKILL";
  end({true, signal, fmt::format("killed by signal {} ({})", signal, name)});
}

void SimulatedWorker::end(ProcessEnd how) {
  if (std::exchange(ended_, true)) return;
  life_.reset();
  agent_.see_end(std::move(how));
}

// ---- Its life
// -------------------------------------------------------------------------------------

void SimulatedWorker::on(const StartWorker& start) {
  start_ = start;
  fault_ = draw_fault(world_.scenario, start.launch);
  ignores_term_ = fault_.ignores_term;
  trainable_.emplace(start.launch.config);
  iteration_ = saved_ = start.launch.restore_iteration;
  time_total_ = start.launch.time_total;
  until_ = start.launch.until;
  later(world_.about(microseconds(500)), [this] {
    if (fails(AttemptFault::Kind::kThrowsInSetup)) return throw_exception("setup: no data");
    if (start_->launch.restore_iteration == 0) return begin();
    say_done();
    load();
  });
}

void SimulatedWorker::load() {
  if (fails(AttemptFault::Kind::kThrowsInLoad)) return throw_exception("load: bad file");
  const auto* parts = world_.disk.find(start_->launch.trial, iteration_);
  if (parts == nullptr || !parts->contains(start_->rank)) {
    return throw_exception(fmt::format("load: checkpoint {} is not there", iteration_));
  }
  trainable_->load(parts->at(start_->rank));
  later(world_.about(microseconds(300)), [this] { begin(); });
}

void SimulatedWorker::begin() {
  say_done();
  if (start_->rank != 0) return follow();
  await_verdict(false);  // a stop may be there already
}

void SimulatedWorker::go_on() {
  const bool shows_life = !has_stepped_ && start_->experiment.hang_timeout > Duration::zero();
  if (leads_group() || shows_life) say(GroupStep{iteration_ + 1, GroupAction::kStep});
  step();
}

void SimulatedWorker::step() {
  waits_ = Waits::kNo;
  step_took_ = world_.about(world_.scenario.step);
  later(step_took_, [this] {
    if (meets_fault_in_step()) return;
    ++iteration_;
    has_stepped_ = true;
    trainable_->step();
    if (start_->rank == 0) return lead();
    say_done();
    follow();
  });
}

bool SimulatedWorker::meets_fault_in_step() {
  using Kind = AttemptFault::Kind;
  if (iteration_ + 1 < fault_.iteration || fault_.rank != start_->rank) return false;
  switch (fault_.kind) {
    case Kind::kThrowsInStep:
      throw_exception("step: diverged");
      return true;
    case Kind::kCrashes:
      end({true, SIGSEGV, "killed by signal 11 (SIGSEGV)"});
      return true;
    case Kind::kExits:
      end({false, 3, "exited with code 3"});
      return true;
    case Kind::kHangs:
      return true;  // nothing more will come
    case Kind::kGarbles:
    case Kind::kSpeaksFalsely:
      if (!std::exchange(has_spoken_nonsense_, true)) speak_nonsense();
      return false;
    default:
      return false;
  }
}

void SimulatedWorker::speak_nonsense() {
  ++world_.tally.nonsense;
  world_.spoke_nonsense.insert(attempt_key(start_->launch.trial, start_->launch.attempt));
  if (fault_.kind == AttemptFault::Kind::kGarbles) {
    agent_.hear(std::nullopt);
  } else {
    say(false_word());
  }
}

WorkerEvent SimulatedWorker::false_word() const {
  if (start_->rank != 0) return GroupStep{iteration_ + 1, GroupAction::kStep};
  const bool is_alone = start_->launch.ranks == 1;
  if (is_alone && iteration_ % 2 == 0) return RankSaved{iteration_ + 1000, time_total_, {}};
  Reported report;
  report.trial = start_->launch.trial;
  report.attempt = AttemptNumber{start_->launch.attempt.value - 1};
  report.iteration = iteration_ + 1;
  return report;
}

// Rank 0 after a step: reports, saves, and goes on as far as it may.
void SimulatedWorker::lead() {
  const Reported report = make_report();
  const bool final = report.final;
  const bool waiting = report.waiting;
  const Launch& launch = start_->launch;
  const bool is_heard = !has_spoken_nonsense_ || fault_.kind != AttemptFault::Kind::kGarbles;
  if (is_heard) world_.reported[attempt_key(launch.trial, launch.attempt)] = iteration_;
  say(report);
  const CheckpointPolicy& policy = start_->experiment.checkpoint;
  if (final) {
    const Next completed = [this] { finish(Outcome::kCompleted); };
    return policy.at_end ? save_now(completed) : completed();
  }
  const Next judged = [this, waiting] { await_verdict(waiting); };
  const bool due = policy.frequency > 0 && iteration_ % policy.frequency == 0;
  due ? save_now(judged) : judged();
}

// Rank r > 0: does what rank 0 says until it says step or end.
void SimulatedWorker::follow() {
  waits_ = Waits::kForWord;
  if (commands_.empty()) return;
  const auto* word = std::get_if<GroupStep>(&commands_.front());
  if (word == nullptr) return throw_exception("a command that does not fit a step boundary");
  const GroupStep said = *word;
  commands_.pop_front();
  waits_ = Waits::kNo;
  switch (said.action) {
    case GroupAction::kSave:
      return write_part([this] { follow(); });
    case GroupAction::kEnd:
      return finish(Outcome::kCompleted);
    case GroupAction::kStep:
      if (said.iteration != iteration_ + 1) return throw_exception("ranks are out of step");
      return step();
  }
}

// ---- Verdicts
// -------------------------------------------------------------------------------------

void SimulatedWorker::await_verdict(bool waiting) {
  waits_ = waiting ? Waits::kForVerdict : Waits::kNo;
  take_verdict();
}

void SimulatedWorker::take_verdict() {
  while (!commands_.empty()) {
    const WorkerCommand command = std::move(commands_.front());
    commands_.pop_front();
    if (const auto* stop = std::get_if<StopAttempt>(&command)) {
      waits_ = Waits::kNo;
      held_ = false;
      return carry_out(stop->kind, has_stepped_);
    }
    if (const auto* word = std::get_if<HoldGroup>(&command)) {
      held_ = word->hold;
      continue;
    }
    const auto* go = std::get_if<Continue>(&command);
    if (go == nullptr) return throw_exception("a command that does not fit a step boundary");
    until_ = go->until;
    waits_ = Waits::kNo;
  }
  if (waits_ == Waits::kNo && !held_) go_on();
}

void SimulatedWorker::carry_out(StopKind verdict, bool can_save) {
  const bool stop = verdict == StopKind::kStop;
  const Next ended = [this, stop] {
    if (stop) return finish(Outcome::kStopped);
    const bool safe = saved_ > 0 && saved_ == iteration_;
    finish(safe ? Outcome::kPaused : Outcome::kLost);
  };
  const bool wants_save = !stop || start_->experiment.checkpoint.at_end;
  can_save&& wants_save ? save_now(ended) : ended();
}

// ---- Checkpoints
// ----------------------------------------------------------------------------------

void SimulatedWorker::save_now(Next next) {
  if (!world_.scenario.can_save || saved_ == iteration_) return next();
  const Launch& launch = start_->launch;
  world_.disk.make_fresh(launch.trial, launch.attempt, iteration_);
  if (leads_group()) say(GroupStep{iteration_, GroupAction::kSave});
  write_part(std::move(next));
}

void SimulatedWorker::write_part(Next next) {
  const bool fault_is_due = iteration_ >= fault_.iteration;
  later(world_.about(microseconds(400)), [this, fault_is_due, next = std::move(next)] {
    if (fault_is_due && fails(AttemptFault::Kind::kThrowsInSave)) {
      return throw_exception("save: disk full");
    }
    if (fault_is_due && fails(AttemptFault::Kind::kDiesInSave)) return die();
    const Launch& launch = start_->launch;
    world_.disk.write_part(launch.trial, launch.attempt, iteration_, start_->rank,
                           trainable_->state());
    saved_ = iteration_;
    say(RankSaved{iteration_, time_total_, std::nullopt});
    next();
  });
}

// ---- Reports and last words
// -----------------------------------------------------------------------

Reported SimulatedWorker::make_report() {
  time_total_ += step_took_;
  time_since_restore_ += step_took_;
  Reported report;
  report.trial = start_->launch.trial;
  report.attempt = start_->launch.attempt;
  report.iteration = iteration_;
  report.time_this_iter = step_took_;
  report.time_total = time_total_;
  report.time_since_restore = time_since_restore_;
  report.iterations_since_restore = iteration_ - start_->launch.restore_iteration;
  report.result = trainable_->result(world_.scenario, iteration_);
  report.final = stops(report);
  const auto reached = number(report, until_.attribute);
  report.waiting =
      !report.final && !until_.attribute.empty() && reached && *reached >= until_.value;
  return report;
}

std::optional<double> SimulatedWorker::number(const Reported& report,
                                              const std::string& path) const {
  return ResultView(report).number(path);
}

bool SimulatedWorker::stops(const Reported& report) const {
  if (contains_path(report.result, "done")) return true;
  const Duration limit = start_->experiment.max_trial_time;
  if (limit > Duration::zero() && report.time_total >= limit) return true;
  for (const StopRule& rule : start_->experiment.stop) {
    const auto found = number(report, rule.path);
    if (found && (rule.at_most ? *found <= rule.bound : *found >= rule.bound)) return true;
  }
  return false;
}

void SimulatedWorker::finish(Outcome outcome) {
  if (leads_group()) say(GroupStep{iteration_, GroupAction::kEnd});
  later(world_.about(microseconds(100)), [this, outcome] {
    say(WorkerEnded{outcome, {}});
    later(world_.about(microseconds(100)), [this] { end({false, 0, "exited with code 0"}); });
  });
}

void SimulatedWorker::throw_exception(const std::string& cause) {
  waits_ = Waits::kNo;
  say(WorkerEnded{Outcome::kException, cause});
  later(world_.about(microseconds(200)), [this] { end({false, 1, "exited with code 1"}); });
}

}  // namespace tune::simulator
