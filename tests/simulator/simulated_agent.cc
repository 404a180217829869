#include "simulator/simulated_agent.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulator/describe.h"

namespace tune::simulator {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr Time kLongestSleep = milliseconds(500);

AgentFacts facts_of(const World& world, Identity identity, std::size_t number) {
  const NodeResources& node = world.scenario.nodes[number];
  AgentFacts facts;
  facts.hello.hostname = fmt::format("node{}", number);
  facts.hello.ip = fmt::format("10.0.0.{}", number);
  facts.hello.pid = identity;
  facts.hello.cpu_units = node.cpu_units;
  facts.hello.memory_bytes = node.memory_bytes;
  for (const Gpu& gpu : node.gpus) {
    const bool is_known = world.scenario.joined;  // by an id, beyond its node
    facts.hello.gpus.push_back({gpu.device, gpu.name, gpu.memory_bytes,
                                is_known ? fmt::format("GPU-{}-{}", number, gpu.device) : ""});
  }
  facts.once_directory = "/once";
  facts.hello.joined = world.scenario.joined;
  facts.hello.own = world.scenario.is_own(number);
  return facts;
}

}  // namespace

SimulatedAgent::SimulatedAgent(World& world, Identity identity, std::size_t node, Outside outside)
    : world_(world),
      identity_(identity),
      node_(node),
      outside_(std::move(outside)),
      machine_(facts_of(world, identity, node)),
      link_(identity) {
  take_part([this] {
    if (!is_guest()) machine_.start(now());
    machine_.on_connected(now());
  });
}

bool SimulatedAgent::is_guest() const {
  return world_.scenario.joined && !world_.scenario.is_own(node_);
}

std::string SimulatedAgent::name() const {
  return fmt::format("agent {}", identity_);
}

// ---- Turns --------------------------------------------------------------------------------------

// Every event of the agent goes through here: it may hang.
void SimulatedAgent::take_part(std::function<void()> what) {
  if (dead_) return;
  if (hangs_) return missed_.push_back(std::move(what));
  what();
  finish_turn();
}

void SimulatedAgent::finish_turn() {
  machine_.on_time(now());
  perform();
  show_life();
  if (!flush_is_planned_) {
    flush_is_planned_ = true;
    world_.queue.after(world_.about(microseconds(20)), life_, [this] {
      flush_is_planned_ = false;
      if (!hangs_) flush();
    });
  }
  plan_tick();
}

void SimulatedAgent::flush() {
  if (!machine_.is_due_to_send(now())) return;
  for (std::string& frame : link_.frames()) {
    outside_.send_frame(std::move(frame));
    last_heartbeat_ = now();
  }
  if (now() - last_heartbeat_ >= Link::kHeartbeatEvery) {
    outside_.send_frame(link_.heartbeat());
    last_heartbeat_ = now();
  }
  const bool has_told = last_heartbeat_ == now();
  if (has_told && world_.chance(world_.scenario.rates.agent_dies)) return die();
  const bool read = machine_.reading();
  machine_.on_sent();
  machine_.on_backlog(now(), link_.unacknowledged_bytes() * world_.scenario.credit_scale);
  perform();
  if (!read && machine_.reading()) {
    drain_all();
    finish_turn();
  }
  if (machine_.is_over()) end();
}

void SimulatedAgent::end() {
  world_.trace(name().c_str(), [] { return "ends"; });
  dead_ = true;
  outside_.links->agent_died(identity_, [](std::uint64_t) { return false; });
  life_ = new_life();
  check_whether_gone();
}

// It sleeps until its next deadline, for half a second at most.
void SimulatedAgent::plan_tick() {
  Time at = now() + kLongestSleep;
  if (const auto deadline = machine_.next_deadline()) at = std::min(at, *deadline);
  at = std::max(at, now() + microseconds(1));
  if (next_tick_ > now() && next_tick_ <= at) return;
  next_tick_ = at;
  world_.queue.after(at - now(), life_, [this, at] {
    if (next_tick_ == at) take_part([] {});
  });
}

// ---- Input --------------------------------------------------------------------------------------

void SimulatedAgent::hear_frame(const std::string& frame) {
  take_part([this, frame] {
    for (const std::string_view message : link_.receive(frame)) hear(decoded<Command>(message));
    link_.acknowledge();
    if (link_.is_in_touch()) machine_.on_driver_heard(now());
    const bool is_another = link_.peer_epoch() != epoch_;
    epoch_ = link_.peer_epoch();
    if (is_another && world_.scenario.joined) machine_.on_other_driver(now(), epoch_);
  });
}

void SimulatedAgent::hear(Command command) {
  world_.trace(name().c_str(), [&] { return "hears " + describe(command); });
  const bool is_setup = std::holds_alternative<Apart<SetupExperiment>>(command);
  if (std::holds_alternative<Drain>(command)) is_told_to_end_ = true;
  machine_.on_command(now(), std::move(command));
  // Most that have joined learn only now what there is to load.
  if (is_setup && is_guest() && !std::exchange(was_set_up_, true)) {
    const bool is_alone = world_.scenario.owns_folder(node_);
    if (world_.scenario.carries(node_)) machine_.on_own_folder("/own", is_alone);
    machine_.start(now());
  }
  perform();
}

void SimulatedAgent::driver_gone() {
  take_part([this] {
    world_.trace(name().c_str(), [] { return "has no driver any more"; });
    machine_.on_driver_gone(now());
  });
}

void SimulatedAgent::experiment_over() {
  take_part([this] {
    world_.trace(name().c_str(), [] { return "finds that the experiment is over"; });
    machine_.on_experiment_over(now());
  });
}

// Ends the agent by a signal, which no worker obeys.
void SimulatedAgent::tell_to_end() {
  take_part([this] {
    world_.trace(name().c_str(), [] { return "is told to end"; });
    ++world_.tally.agents_told_to_end;
    is_told_to_end_ = true;
    machine_.on_signal(now(), "SIGTERM");
  });
}

void SimulatedAgent::hear_worker(WorkerId worker, std::optional<WorkerEvent> event) {
  if (garbled_.contains(worker)) return;
  pipes_[worker].push_back(std::move(event));
  world_.queue.after(world_.about(microseconds(20)), life_, [this, worker] {
    take_part([this, worker] {
      if (listens() && (machine_.reading() || of_groups_.contains(worker))) drain(worker);
    });
  });
}

void SimulatedAgent::drain_all() {
  for (const auto& [worker, pid] : std::map(pids_)) {
    if (listens() && (machine_.reading() || of_groups_.contains(worker))) drain(worker);
  }
}

void SimulatedAgent::drain(WorkerId worker) {
  for (auto pipe = pipes_.find(worker); pipe != pipes_.end() && !pipe->second.empty();
       pipe = pipes_.find(worker)) {
    std::optional<WorkerEvent> event = std::move(pipe->second.front());
    pipe->second.pop_front();
    if (event) {
      machine_.on_worker(now(), worker, std::move(*event));
    } else {
      garbled_.insert(worker);
      pipe->second.clear();
      machine_.on_worker_garbled(now(), worker, "a frame of 4 GiB");
    }
    perform();
  }
}

void SimulatedAgent::see_end(std::uint32_t pid, const ProcessEnd& end) {
  world_.queue.after(world_.about(microseconds(100)), life_, [this, pid, end] {
    take_part([this, pid, end] {
      world_.trace(name().c_str(), [&] { return fmt::format("reaps {}: {}", pid, end.text); });
      drain(machine_.worker_of(pid));  // what it said is heard before its end
      workers_.erase(pid);
      machine_.on_exit(now(), pid, end);
    });
  });
}

// ---- The zygote ---------------------------------------------------------------------------------

void SimulatedAgent::act(StartZygote&) {
  if (zygote_hangs_) ++world_.tally.hung_zygotes;
  const bool again = zygotes_++ > 0;
  const ZygoteFate fate = outside_.zygote_fate(again);
  if (fate != ZygoteFate::kLoads) {
    ++(again ? world_.tally.loads_failed_again : world_.tally.loads_failed);
  }
  zygote_is_ready_ = zygote_hangs_ = false;
  if (fate == ZygoteFate::kCannotStart) {
    return machine_.on_zygote_not_started(now(), "fork: no room for another process");
  }
  zygote_ = new_life();
  machine_.on_zygote_started(now(), ++world_.last_pid);
  if (fate == ZygoteFate::kLoadsForEver) {
    ++world_.tally.endless_loads;
    return;
  }
  world_.queue.after(world_.about(milliseconds(2)), zygote_,
                     [this, fate] { take_part([this, fate] { zygote_loaded(fate); }); });
}

void SimulatedAgent::zygote_loaded(ZygoteFate fate) {
  if (zygote_ == nullptr) return;
  if (fate == ZygoteFate::kDiesLoading) return zygote_ends("killed by signal 11 (SIGSEGV)");
  ZygoteReady ready;
  if (fate == ZygoteFate::kLoads) {
    ready.trainables = {{kTrainable, world_.scenario.can_save, false}};
    zygote_is_ready_ = true;
  } else {
    ready.error = "cannot open shared object file";
  }
  machine_.on_zygote(now(), std::move(ready));
}

void SimulatedAgent::kill_zygote() {
  if (zygote_ == nullptr || dead_) return;
  world_.trace(name().c_str(), [] { return "loses its zygote"; });
  zygote_ends("killed by signal 9 (SIGKILL)");
}

// A zygote that loads its library may take any time.
void SimulatedAgent::hang_zygote() {
  if (!zygote_is_ready_ || dead_) return;
  world_.trace(name().c_str(), [] { return "has a zygote that hangs"; });
  zygote_hangs_ = true;
}

void SimulatedAgent::zygote_ends(const std::string& how) {
  zygote_.reset();
  zygote_is_ready_ = false;
  world_.queue.after(world_.about(microseconds(100)), life_, [this, how] {
    take_part([this, how] { machine_.on_zygote_died(now(), how); });
  });
}

void SimulatedAgent::act(EndZygote&) {
  if (zygote_ == nullptr) return;
  zygote_ends("killed by signal 9 (SIGKILL)");
}

void SimulatedAgent::act(SpawnWorker& action) {
  if (action.of_group) of_groups_.insert(action.worker);
  if (zygote_ == nullptr) return;  // it is asked again when the death is noticed
  world_.queue.after(world_.about(microseconds(300)), zygote_, [this, action] {
    if (!zygote_hangs_) fork_worker(action);
  });
}

void SimulatedAgent::fork_worker(const SpawnWorker& action) {
  if (dead_) return;
  Spawned spawned{action.worker, 0, "fork: not enough memory"};
  if (!world_.chance(world_.scenario.rates.fork_fails)) {
    spawned = {action.worker, ++world_.last_pid, {}};
    const std::uint32_t pid = spawned.pid;
    const WorkerId worker = action.worker;
    pids_[worker] = pid;
    workers_[pid] = std::make_unique<SimulatedWorker>(
        world_, pid,
        SimulatedWorker::Agent{[this, worker](std::optional<WorkerEvent> event) {
                                 hear_worker(worker, std::move(event));
                               },
                               [this, pid](const ProcessEnd& end) { see_end(pid, end); }, node_,
                               where()});
  }
  take_part([this, spawned] { machine_.on_zygote(now(), spawned); });
}

// ---- Actions ------------------------------------------------------------------------------------

void SimulatedAgent::perform() {
  for (machine_.take_actions(actions_); !actions_.empty(); machine_.take_actions(actions_)) {
    for (AgentAction& action : std::exchange(actions_, {})) {
      std::visit([this](auto& one) { act(one); }, action);
    }
  }
}

void SimulatedAgent::act(TellDriver& action) {
  world_.trace(name().c_str(), [&] { return "tells " + describe(action.event); });
  if (std::holds_alternative<NodeOut>(action.event)) ++world_.tally.nodes_out;
  link_.send(encoded(action.event));
}

SimulatedWorker* SimulatedAgent::find(WorkerId worker) {
  const auto pid = pids_.find(worker);
  if (pid == pids_.end()) return nullptr;
  const auto found = workers_.find(pid->second);
  return found == workers_.end() ? nullptr : found->second.get();
}

void SimulatedAgent::act(TellWorker& action) {
  const SimulatedWorker* known = find(action.worker);
  if (known == nullptr) return;
  const auto verdict = verdict_of(action.command);
  const auto* stop = std::get_if<StopAttempt>(&action.command);
  const bool may_leave = is_told_to_end_ || world_.scenario.joined;
  if (may_leave && stop != nullptr && stop->grace == machine_.save_grace(now())) {
    world_.verdicts[verdict->first].insert(verdict->second);  // its own, to leave
  }
  const std::uint32_t pid = known->pid();
  // The same delay for all, so that they stay in order.
  world_.queue.after(microseconds(30), life_, [this, pid, command = std::move(action.command)] {
    if (const auto worker = workers_.find(pid); worker != workers_.end()) {
      worker->second->hear(command);
    }
  });
}

void SimulatedAgent::act(SignalWorker& action) {
  if (const auto worker = workers_.find(action.pid); worker != workers_.end()) {
    worker->second->signal(action.signal);
  }
}

void SimulatedAgent::act(PromoteCheckpoint& action) {
  give_to_files([this, saved = action.saved, joins = action.joins] {
    std::string error;
    const Where own = where();
    const CheckpointId id{saved.iteration, saved.attempt};
    const auto is_done = [&] {
      if (!joins.empty()) return world_.disk.join(saved, joins);
      if (!world_.scenario.carries(node_)) return world_.disk.promote(own, saved);
      if (world_.disk.on_node(own, saved.trial, id) == nullptr) return false;
      world_.disk.name(own, saved.trial, id);
      return true;
    };
    if (world_.chance(world_.scenario.rates.promotion_fails)) {
      error = "renaming the checkpoint: no space left on device";
    } else if (!is_done()) {
      error = "renaming the checkpoint: no such file or directory";
    }
    machine_.on_promoted(now(), saved, error);
  });
}

void SimulatedAgent::act(DropCheckpoint& action) {
  give_to_files([this, saved = action.saved] {
    const CheckpointId id{saved.iteration, saved.attempt};
    world_.disk.drop(where(), saved.trial, id);
  });
}

void SimulatedAgent::act(ReadTail& action) {
  give_to_files([this, action] { machine_.on_tail(now(), action, "its last lines"); });
}

void SimulatedAgent::act(ConcludeAttempt& action) {
  give_to_files([this, action] {
    const AttemptEnded& ended = action.ended;
    if (action.removes_half_written) {
      const Where own = where();
      world_.disk.remove_half_written(own, ended.trial, ended.attempt);
    }
    objects_.carrier().on_ended(ended.trial, ended.outcome == Outcome::kPaused);
    machine_.on_concluded(now(), ended);
  });
}

// Done in order, beside the loop. While many wait it does not listen to its workers.
void SimulatedAgent::give_to_files(std::function<void()> work) {
  const bool is_slow = world_.chance(world_.scenario.rates.files_slow);
  const Time takes = world_.about(is_slow ? world_.scenario.file_delay : microseconds(20));
  files_are_done_ = std::max(files_are_done_, now()) + takes;
  if (++files_waiting_ == kMaxFiles) ++world_.tally.full_agents;
  machine_.on_disk(now(), listens());
  world_.queue.after(files_are_done_ - now(), life_, [this, work = std::move(work)] {
    take_part([this, work] {
      const bool listened = listens();
      --files_waiting_;
      machine_.on_disk(now(), listens());
      work();
      perform();
      if (!listened) drain_all();
    });
  });
}

// ---- Accidents ----------------------------------------------------------------------------------

void SimulatedAgent::kill_worker() {
  if (workers_.empty()) return;
  auto chosen = workers_.begin();
  std::advance(chosen, world_.random.integer(0, static_cast<std::int64_t>(workers_.size())));
  world_.trace(name().c_str(), [&] { return fmt::format("process {} is killed", chosen->first); });
  if (const StartWorker* start = chosen->second->start()) {
    world_.killed.insert(attempt_key(start->launch.trial, start->launch.attempt));
  }
  chosen->second->die();
}

void SimulatedAgent::hang() {
  world_.trace(name().c_str(), [] { return "hangs"; });
  hangs_ = true;
}

void SimulatedAgent::go_on() {
  if (dead_ || !hangs_) return;
  world_.trace(name().c_str(), [] { return "goes on"; });
  hangs_ = false;
  hung_until_ = now();
  for (const auto& what :
       std::exchange(missed_, {})) {  // in one turn, as a process that was stopped
    if (!dead_) what();
  }
  if (!dead_) finish_turn();
}

// Its workers notice the end of a pipe a moment later and end themselves.
void SimulatedAgent::die() {
  if (std::exchange(dead_, true)) return;
  world_.trace(name().c_str(), [] { return "dies"; });
  outside_.links->agent_died(identity_, [this](std::uint64_t key) { return had_ranks(key); });
  zygote_.reset();
  life_ = new_life();
  for (auto& [pid, worker] : workers_) {
    SimulatedWorker* process = worker.get();
    world_.queue.after(world_.about(microseconds(200)), life_, [this, process] {
      process->die();
      check_whether_gone();
    });
  }
  world_.queue.after(microseconds(1), life_, [this] { check_whether_gone(); });
}

void SimulatedAgent::check_whether_gone() {
  for (const auto& [pid, worker] : workers_) {
    if (worker->exists()) return;
  }
  // The receiver may destroy this agent: so tell it by an event of its own.
  world_.queue.after(microseconds(1), life_, [told = std::exchange(outside_.ended, {})] {
    if (told) told();
  });
}

}  // namespace tune::simulator
