#include "simulator/simulated_worker.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "simulator/violation.h"

namespace tune::simulator {

using std::chrono::microseconds;

AttemptFault draw_fault(const Scenario& scenario, const WorkerLaunch& launch) {
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

namespace {

// The trial and the checkpoint of ".../0a1b2_00003/checkpoint_000008-a2".
std::pair<TrialNumber, CheckpointId> place_of(const std::string& folder) {
  const std::size_t name = folder.rfind('/') + 1;
  const std::size_t number = folder.rfind('_', name - 2) + 1;
  const auto id = checkpoint_of_name(folder.substr(name));
  if (!id) violate("a restored attempt finds its checkpoint", folder + " has no such name");
  const unsigned long trial = std::stoul(folder.substr(number, name - 1 - number));
  return {TrialNumber{static_cast<std::uint32_t>(trial)}, *id};
}

}  // namespace

SimulatedWorker::SimulatedWorker(World& world, std::uint32_t pid, Agent agent)
    : world_(world), pid_(pid), agent_(std::move(agent)) {}

void SimulatedWorker::later(Time delay, std::function<void()> next) {
  world_.queue.after(delay, life_, std::move(next));
}

bool SimulatedWorker::fails(AttemptFault::Kind kind) const {
  return fault_.kind == kind && fault_.rank == start_->rank;
}

bool SimulatedWorker::is_at_bad_place() const {
  const std::optional<BadPlace>& bad = world_.scenario.bad_place;
  if (!bad || bad->node != agent_.node || world_.queue.now() >= bad->mended_at) return false;
  const auto& devices = start_->gpu_devices;  // each named by its number
  return !bad->gpu || std::ranges::find(devices, std::to_string(*bad->gpu)) != devices.end();
}

// ---- Input --------------------------------------------------------------------------------------

void SimulatedWorker::hear(WorkerCommand command) {
  if (ended_) return;
  if (const auto* start = std::get_if<StartWorker>(&command)) return on(*start);
  check_verdict(command);
  commands_.push_back(std::move(command));
  if (listens_) listen();
  perform();
}

void SimulatedWorker::check_verdict(const WorkerCommand& command) const {
  const auto verdict = verdict_of(command);
  if (!verdict) return;
  const WorkerLaunch& launch = start_->launch;
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

void SimulatedWorker::notice_loss() {
  if (ended_ || !machine_) return;
  const auto how = world_.random.integer(0, 3);
  if (how == 0) return end({true, SIGABRT, "killed by signal 6 (SIGABRT)"});
  life_ = new_life();  // nothing that it was about to do comes
  throw_exception("step: connection reset by another rank", how == 1);
}

void SimulatedWorker::end(ProcessEnd how) {
  if (std::exchange(ended_, true)) return;
  life_.reset();
  agent_.see_end(std::move(how));
}

// ---- Its life -----------------------------------------------------------------------------------

void SimulatedWorker::on(const StartWorker& start) {
  start_ = start;
  fault_ = draw_fault(world_.scenario, start.launch);
  ignores_term_ = fault_.ignores_term;
  trainable_.emplace(start.launch.config);
  machine_.emplace(*start_);
  later(world_.about(microseconds(500)), [this] {
    if (fails(AttemptFault::Kind::kThrowsInSetup)) return throw_exception("setup: no data");
    if (is_at_bad_place()) return throw_exception("setup: bad hardware");
    if (start_->launch.restore_iteration == 0) return begin();
    machine_->on_set_up();
    perform();
    load();
  });
}

void SimulatedWorker::load() {
  if (fails(AttemptFault::Kind::kThrowsInLoad)) return throw_exception("load: bad file");
  CheckpointId id{machine_->iteration(), start_->launch.restore_attempt};
  TrialNumber of = start_->launch.trial;
  const std::uint64_t key = attempt_key(start_->launch.trial, start_->launch.attempt);
  const bool carries = world_.scenario.carries(agent_.node);
  if (!carries && !start_->restore_folder.empty()) {
    std::tie(of, id) = place_of(start_->restore_folder);
  }
  const auto* parts = carries ? world_.disk.fetched(key, group_node()) : world_.disk.find(of, id);
  if (parts == nullptr || !parts->contains(start_->rank)) {
    if (world_.given_up.contains(key)) return throw_exception("load: no such checkpoint");
    violate("a restored attempt finds its checkpoint",
            fmt::format("{} of trial {} is not there for attempt {} of trial {}",
                        checkpoint_name(id.iteration, id.attempt), of.value,
                        start_->launch.attempt.value, start_->launch.trial.value));
  }
  trainable_->load(parts->at(start_->rank));
  later(world_.about(microseconds(300)), [this] { begin(); });
}

std::uint32_t SimulatedWorker::group_node() const {
  return static_cast<std::uint32_t>(std::stoul(start_->environment.at("GROUP_RANK")));
}

void SimulatedWorker::begin() {
  machine_->on_ready();
  perform();
}

void SimulatedWorker::step() {
  later(world_.about(world_.scenario.step), [this] {
    if (!meets_fault_in_step() && !works_alone()) finish_step();
  });
}

void SimulatedWorker::finish_step() {
  trainable_->step();
  machine_->on_report(world_.queue.now(),
                      trainable_->result(world_.scenario, machine_->iteration() + 1),
                      world_.scenario.can_save);
  perform();
}

// Other ranks of its group may wait for it.
bool SimulatedWorker::works_alone() {
  const bool is_due = fails(AttemptFault::Kind::kWorksAlone) && start_->launch.ranks > 1 &&
                      machine_->iteration() + 1 >= fault_.iteration;
  if (!is_due || std::exchange(was_alone_, true)) return false;
  ++world_.tally.worked_alone;
  say(RankAlone{true});
  later(world_.scenario.lone_work(), [this] {
    say(RankAlone{false});
    finish_step();
  });
  return true;
}

void SimulatedWorker::hang() {
  world_.hung[attempt_key(start_->launch.trial, start_->launch.attempt)] = start_->rank;
}

bool SimulatedWorker::meets_fault_in_step() {
  using Kind = AttemptFault::Kind;
  if (machine_->iteration() + 1 < fault_.iteration || fault_.rank != start_->rank) return false;
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
      hang();
      return true;  // nothing more will come
    case Kind::kHangsAlone:
      if (start_->launch.ranks < 2) return false;
      ++world_.tally.hung_alone;
      hang();
      say(RankAlone{true});
      return true;
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
  const bool is_of_lead = start_->rank == start_->local_rank;
  world_.spoke_nonsense.try_emplace(attempt_key(start_->launch.trial, start_->launch.attempt),
                                    !is_of_lead);
  if (fault_.kind == AttemptFault::Kind::kGarbles) {
    agent_.hear(std::nullopt);
  } else {
    say(false_word());
  }
}

WorkerEvent SimulatedWorker::false_word() const {
  const std::uint64_t iteration = machine_->iteration();
  if (start_->rank != 0) return GroupStep{iteration + 1, GroupAction::kStep};
  const bool is_alone = start_->launch.ranks == 1;
  if (is_alone && iteration % 2 == 0) return RankSaved{iteration + 1000, {}, {}};
  Reported report;
  report.trial = start_->launch.trial;
  report.attempt = AttemptNumber{start_->launch.attempt.value - 1};
  report.iteration = iteration + 1;
  return report;
}

// ---- Actions of its machine ---------------------------------------------------------------------

void SimulatedWorker::perform() {
  for (machine_->take_actions(actions_); !ended_ && !actions_.empty();
       machine_->take_actions(actions_)) {
    for (WorkerAction& action : std::exchange(actions_, {})) {
      std::visit([this](auto& one) { act(one); }, action);
    }
  }
}

void SimulatedWorker::act(SayToAgent& action) {
  if (const auto* report = std::get_if<Reported>(&action.event)) {
    const bool is_heard = !has_spoken_nonsense_ || fault_.kind != AttemptFault::Kind::kGarbles;
    if (is_heard) world_.reported[attempt_key(report->trial, report->attempt)] = report->iteration;
  }
  say(std::move(action.event));
}

void SimulatedWorker::act(const PrepareCheckpoint& action) {
  const WorkerLaunch& launch = start_->launch;
  const Where where = agent_.where;
  world_.disk.make_fresh(where, launch.trial, {action.iteration, launch.attempt});
}

void SimulatedWorker::act(const WriteCheckpoint&) {
  const bool fault_is_due = machine_->iteration() >= fault_.iteration;
  Time takes = world_.about(microseconds(400));
  if (fault_is_due && fails(AttemptFault::Kind::kSavesSlowly) && !std::exchange(was_alone_, true)) {
    ++world_.tally.slow_saves;
    takes = world_.scenario.lone_work();
  }
  later(takes, [this, fault_is_due] {
    if (fault_is_due && fails(AttemptFault::Kind::kThrowsInSave)) {
      return throw_exception("save: disk full");
    }
    if (fault_is_due && fails(AttemptFault::Kind::kDiesInSave)) return die();
    const WorkerLaunch& launch = start_->launch;
    const CheckpointId id{machine_->iteration(), launch.attempt};
    world_.disk.write_part(agent_.where, launch.trial, id, start_->rank, trainable_->state());
    machine_->on_saved();
    perform();
  });
}

void SimulatedWorker::act(const ListenToAgent& action) {
  listens_ = action;
  listen();
}

void SimulatedWorker::listen() {
  if (commands_.empty() && listens_->wait) return;
  listens_.reset();
  if (commands_.empty()) return machine_->on_silence(world_.queue.now());
  const WorkerCommand command = std::move(commands_.front());
  commands_.pop_front();
  machine_->on_command(command);
}

void SimulatedWorker::act(const LeaveAttempt&) {
  later(world_.about(microseconds(100)), [this] {
    say(machine_->last_word());
    later(world_.about(microseconds(100)), [this] { end({false, 0, "exited with code 0"}); });
  });
}

void SimulatedWorker::throw_exception(const std::string& cause, bool is_of_group) {
  machine_->on_failed(cause, is_of_group);
  say(WorkerEnded{Outcome::kException, cause, is_of_group});
  later(world_.about(microseconds(200)), [this] { end({false, 1, "exited with code 1"}); });
}

}  // namespace tune::simulator
