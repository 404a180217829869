#include "simulator/invariants.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "simulator/describe.h"
#include "simulator/violation.h"

namespace tune::simulator {

namespace {

// The attempt a message speaks of.
struct Subject {
  TrialNumber trial;
  AttemptNumber attempt;
};

std::optional<Subject> subject_of(const AgentEvent& event) {
  return std::visit(
      [](const auto& one) -> std::optional<Subject> {
        if constexpr (requires { one.attempt; }) {
          return Subject{one.trial, one.attempt};
        } else {
          return std::nullopt;
        }
      },
      event);
}

std::string name_of(TrialNumber trial, AttemptNumber attempt) {
  return fmt::format("attempt {} of trial {}", attempt.value, trial.value);
}

}  // namespace

// ---- After every event --------------------------------------------------------------------------

void Invariants::after_event(const Agents& agents, const SimulatedDriver* driver) {
  // Removals of any driver count, the newest or an older one that has just been woken.
  const bool leader_knows = driver != nullptr && leads(*driver);
  if (leader_knows && std::exchange(removals_, world_.disk.removals()) != world_.disk.removals()) {
    recorded_checkpoints_are_on_disk(driver->controller());
  }
  if (leader_knows) no_gpu_is_promised_to_two_agents(agents, *driver);
  groups_end_everywhere(agents);
  for (const SimulatedAgent* agent : agents) {
    no_resource_is_promised_twice(*agent);
    // A superseded driver may not know it yet: its agents end when it does.
    if (driver != nullptr && leads(*driver)) processes_have_a_reservation(*agent, *driver);
  }
}

// Counts from the resources that a node's processes were given, not from the placer's books.
void Invariants::no_resource_is_promised_twice(const SimulatedAgent& agent) const {
  const NodeResources& node = world_.scenario.nodes[agent.node()];
  std::int64_t cpu_units = 0;
  std::int64_t memory_bytes = 0;
  for (const auto& [pid, worker] : agent.workers()) {
    if (!worker->exists() || worker->start() == nullptr) continue;
    const WorkerLaunch& one = worker->start()->launch;
    const Launch* launch = promised(one, worker->start()->rank);
    if (launch == nullptr) continue;  // another invariant's concern
    const std::uint32_t ranks = launch->ranks;
    cpu_units += launch->cpu_units / ranks;
    memory_bytes += world_.scenario.request.memory_bytes / ranks;
  }
  const ResourceRequest& request = world_.scenario.request;
  const bool has_cpus = cpu_units + request.cpu_units <= node.cpu_units;
  const bool has_memory = memory_bytes + request.memory_bytes <= node.memory_bytes;
  if (has_cpus && !has_memory) ++world_.tally.full_of_memory;
  const bool fits =
      cpu_units <= node.cpu_units && memory_bytes <= node.memory_bytes &&
      std::ranges::all_of(gpu_use(agent), [](std::int64_t used) { return used <= kUnit; });
  if (!fits) {
    violate("no resource is promised twice",
            fmt::format("node {} runs processes with {} of its {} CPU units and {} of its {} bytes "
                        "of memory, or a GPU has too many",
                        agent.node(), cpu_units, node.cpu_units, memory_bytes, node.memory_bytes));
  }
}

namespace {

bool runs(const Controller& controller, const WorkerLaunch& launch) {
  if (launch.trial.value >= controller.trials().size()) return false;
  const Trial& trial = controller.trials()[launch.trial.value];
  return trial.placement && trial.attempt == launch.attempt;
}

}  // namespace

std::vector<std::int64_t> Invariants::gpu_use(const SimulatedAgent& agent,
                                              const Controller* holder) const {
  std::vector<std::int64_t> gpu_units(world_.scenario.nodes[agent.node()].gpus.size());
  for (const auto& [pid, worker] : agent.workers()) {
    if (!worker->exists() || worker->start() == nullptr) continue;
    const WorkerLaunch& one = worker->start()->launch;
    if (holder != nullptr && !runs(*holder, one)) continue;
    const Launch* known = promised(one, worker->start()->rank);
    if (known == nullptr || known->gpus.empty()) continue;
    const Launch& launch = *known;
    const std::size_t each = launch.gpus.size() / launch.local_ranks();
    const std::int64_t share =
        std::min<std::int64_t>(kUnit, world_.scenario.request.gpu_units / launch.ranks);
    for (std::size_t i = 0; i < each; ++i) {
      gpu_units.at(launch.gpus[worker->start()->local_rank * each + i]) += share;
    }
  }
  return gpu_units;
}

// Of agents that joined one node, as when one is started again while the other is still there. On a
// real node a second one is refused there as long as the first lives, so agents and attempts that
// are given up do not count.
void Invariants::no_gpu_is_promised_to_two_agents(const Agents& agents,
                                                  const SimulatedDriver& driver) const {
  if (!world_.scenario.joined) return;
  std::map<std::size_t, std::vector<std::int64_t>> used;  // by node
  for (const SimulatedAgent* agent : agents) {
    const std::optional<AgentNumber> number = driver.number_of(agent->identity());
    if (!number || !driver.controller().nodes().contains(*number)) continue;
    const std::vector<std::int64_t> own = gpu_use(*agent, &driver.controller());
    std::vector<std::int64_t>& all = used.try_emplace(agent->node(), own.size()).first->second;
    for (std::size_t gpu = 0; gpu < own.size(); ++gpu) all[gpu] += own[gpu];
    if (std::ranges::all_of(all, [](std::int64_t units) { return units <= kUnit; })) continue;
    violate("no resource is promised twice",
            fmt::format("a GPU of node {} has processes of two agents", agent->node()));
  }
}

void Invariants::processes_have_a_reservation(const SimulatedAgent& agent,
                                              const SimulatedDriver& driver) {
  constexpr const char* kName = "a process exists only while its trial holds a reservation";
  const std::optional<AgentNumber> number = driver.number_of(agent.identity());
  if (may_run_unknown(agent, driver)) return;
  for (const auto& [pid, worker] : agent.workers()) {
    if (!worker->exists()) continue;
    if (!number) violate(kName, fmt::format("process {} of an agent nobody knows", pid));
    if (worker->start() == nullptr) {
      const bool some = std::ranges::any_of(
          open_, [&](const auto& open) { return open.second.runs_on(*number); });
      if (!some) violate(kName, fmt::format("process {} waits on an idle agent", pid));
      continue;
    }
    const WorkerLaunch& launch = worker->start()->launch;
    const auto open = open_.find(launch.trial);
    const bool is_open = open != open_.end() && open->second.attempt == launch.attempt &&
                         open->second.runs_on(*number) && !open->second.free.contains(*number);
    if (!is_open) {
      violate(kName, fmt::format("process {} is of {}, which is not the one that runs", pid,
                                 name_of(launch.trial, launch.attempt)));
    }
  }
}

// A machine that joined and is lost runs on until it is heard again; then it is told to end, and
// has the time for it. So does one that another driver had, until it has greeted this one.
bool Invariants::may_run_unknown(const SimulatedAgent& agent, const SimulatedDriver& driver) {
  const Scenario& scenario = world_.scenario;
  const std::optional<AgentNumber> number = driver.number_of(agent.identity());
  const Nodes& nodes = driver.controller().nodes();
  const bool is_known = number && nodes.contains(*number) && !nodes.is_away(*number);
  if (!scenario.joined || is_known) {
    unknown_since_.erase(agent.identity());
    return false;
  }
  const Time now = world_.queue.now();
  Time& since = unknown_since_.try_emplace(agent.identity(), now).first->second;
  since = std::max(since, agent.reachable_at());
  if (agent.hangs()) since = now;
  if (now - since <= time_to_end()) return true;
  // A zygote that hangs may still fork the process of an attempt that is to end.
  const Time to_fork = ZygoteSupervisor::kForkLimit + ZygoteSupervisor::kLongestPause;
  if (number && nodes.is_away(*number) && now - since > time_to_end() + to_fork) {
    violate("a machine that is back takes part again",
            fmt::format("agent {} does not", agent.identity()));
  }
  return false;
}

// For an agent that hears that it is to end what it runs.
Time Invariants::time_to_end() const {
  const Scenario& scenario = world_.scenario;
  return 3 * Link::kHeartbeatEvery + 2 * DriverMachine::kLookEvery +
                      Attempt::kTermGrace + 400 * scenario.network_delay +
                      SimulatedStore::kSlowCalls * 2 * scenario.store_delay +
                      scenario.store_patience + 20 * scenario.file_delay;
}

// ---- Turns --------------------------------------------------------------------------------------

bool Invariants::is_stale(const FromAgent& from) const {
  const std::optional<Subject> subject = subject_of(from.event);
  if (!subject) return false;
  const auto open = open_.find(subject->trial);
  if (open == open_.end() || open->second.attempt != subject->attempt) return true;
  // A node that does not lead tells its own end alone.
  const bool is_end = std::holds_alternative<AttemptEnded>(from.event) ||
                      std::holds_alternative<PlaceFree>(from.event);
  return is_end ? !open->second.runs_on(from.agent) : open->second.lead != from.agent;
}

void Invariants::before_turn(const SimulatedDriver& driver, const Turn& turn) {
  if (!leads(driver)) return;
  branch_.reset();
  if (turn.events.empty()) return;  // the controller hears nothing
  const bool stale = std::ranges::any_of(turn.events, [&](const Event& event) {
    const auto* from = std::get_if<FromAgent>(&event);
    return from != nullptr && is_stale(*from);
  });
  // Other turns are checked now and then: a restored controller goes on as the saved one.
  if (stale || driver.turns() % 64 == 1) branch_off(driver, turn);
}

namespace {

std::vector<std::string> in_words(const Effects& effects, std::vector<std::string> records) {
  std::vector<std::string> words = std::move(records);
  for (const auto& [agent, command] : effects.commands) {
    words.push_back(fmt::format("to {}: {}", agent.value, encoded(command)));
  }
  for (const RemoveCheckpoint& removal : effects.removals) {
    const CheckpointId& id = removal.checkpoint;
    words.push_back(fmt::format("remove {} of {}", checkpoint_name(id.iteration, id.attempt),
                                removal.trial.value));
  }
  for (const auto& [trial, lost] : effects.unsettled) {
    words.push_back(fmt::format("settle {} up to {}", trial.value, lost.value));
  }
  for (const OrderAnswer& answer : effects.answers) words.push_back("answer: " + answer.text);
  return words;
}

}  // namespace

// The end of what a machine came back with, and nobody knows, lets it have trials again.
bool Invariants::ends_foreign(const FromAgent& from, const Controller& controller) {
  const Nodes& nodes = controller.nodes();
  return std::holds_alternative<AttemptEnded>(from.event) && nodes.contains(from.agent) &&
         nodes.is_away(from.agent);
}

void Invariants::branch_off(const SimulatedDriver& driver, const Turn& turn) {
  Controller controller(controller_setup(world_.scenario));
  controller.restore(driver.controller().save());
  Branch branch;
  Effects all;
  std::vector<std::string> records;
  const auto before = open_;
  const auto expected_before = expected_;
  for (const Event& event : turn.events) {
    const auto* from = std::get_if<FromAgent>(&event);
    const auto record = [&](const Record& one) { records.push_back(describe(one)); };
    const bool is_old = from != nullptr && is_stale(*from) && !ends_foreign(*from, controller);
    branch.stale = branch.stale || is_old;
    // In its place one that says nothing.
    const Event none = is_old ? FromAgent{from->agent, AttemptStarted{{~0u}, {}}, from->number}
                              : FromAgent{};
    const Effects effects = controller.handle(turn.now, is_old ? none : event, record);
    if (is_old) continue;
    follow(event);
    std::ranges::copy(effects.commands, std::back_inserter(all.commands));
    std::ranges::copy(effects.removals, std::back_inserter(all.removals));
    for (const auto& [trial, lost] : effects.unsettled) all.settle(trial, lost);
    std::ranges::copy(effects.answers, std::back_inserter(all.answers));
    for (const auto& [agent, command] : effects.commands) {
      const auto* launch = std::get_if<Launch>(&command);
      if (launch == nullptr || launch->node > 0) continue;
      open_[launch->trial] = open_of(controller.trials()[launch->trial.value]);
    }
  }
  branch.effects = in_words(all, std::move(records));
  open_ = before;
  expected_ = expected_before;
  // Time passes also in a turn without events.
  controller.handle(turn.now, AgentLost{AgentNumber{~0u}, {}}, [](const Record&) {});
  branch.state = controller.save();
  branch_ = std::move(branch);
}

void Invariants::after_turn(const SimulatedDriver& driver, const Turn& turn,
                            const Effects& effects) {
  if (driver.turns() == 1) taken_over(driver);
  if (!leads(driver)) return;
  if (driver.turns() == 1) follow_start(driver);
  followed_ = driver.last_appended();
  ++world_.tally.turns;
  world_.tally.removals += effects.removals.size();
  no_old_message_had_an_effect(driver, effects);
  for (const Event& event : turn.events) {
    if (const auto* from = std::get_if<FromAgent>(&event)) follow(*from);
    follow(event);
  }
  for (const auto& [agent, command] : effects.commands) {
    const auto* launch = std::get_if<Launch>(&command);
    if (launch != nullptr) follow_launch(driver.controller(), agent, *launch);
  }
  count_said_again(turn, effects);
  running_trials_are_the_open_attempts(driver.controller());
  reservations_equal_running_trials(driver.controller());
  recorded_checkpoints_are_on_disk(driver.controller());
  trials_.after_turn(driver.controller(), effects);
}

void Invariants::no_old_message_had_an_effect(const SimulatedDriver& driver,
                                              const Effects& effects) {
  if (!branch_) return;
  const Branch branch = *std::exchange(branch_, {});
  if (in_words(effects, driver.records()) == branch.effects &&
      driver.controller().save() == branch.state)
    return;
  violate(branch.stale ? "no message of an old attempt has an effect"
                       : "a restored controller goes on as the one that was saved",
          "the state after the turn, its commands, removals or records are different without it");
}

// Updates the open attempts after an event.
void Invariants::follow(const Event& event) {
  if (std::holds_alternative<DriverStarted>(event)) {
    lost_.clear();
    expected_ = kept_;
    std::set<AgentNumber> gone;
    for (const auto& [trial, open] : open_) {
      if (open.lead && !kept_.contains(*open.lead)) gone.insert(*open.lead);
      for (const AgentNumber agent : open.others) {
        if (!kept_.contains(agent)) gone.insert(agent);
      }
    }
    for (const AgentNumber agent : gone) end_on(agent);
    world_.tally.went_on += open_.size();
  }
  if (const auto* lost = std::get_if<AgentLost>(&event)) {
    lost_.insert(lost->agent);
    end_on(lost->agent);
  }
  const auto* from = std::get_if<FromAgent>(&event);
  if (from == nullptr) return;
  if (const auto* hello = std::get_if<Apart<AgentHello>>(&from->event)) follow(from->agent, **hello);
  if (is_stale(*from)) return;
  if (const auto* ended = std::get_if<AttemptEnded>(&from->event)) {
    Open& open = open_.at(ended->trial);
    open.remove(from->agent);
    if (open.is_over()) open_.erase(ended->trial);
  }
  if (const auto* free = std::get_if<PlaceFree>(&from->event)) {
    const auto others = std::ranges::count_if(
        open_, [&](const auto& open) { return open.second.free.contains(from->agent); });
    if (others < Controller::kMostFree) open_.at(free->trial).free.insert(from->agent);
  }
  const auto* out = std::get_if<NodeOut>(&from->event);
  if (out != nullptr && out->gone) follow(Event(AgentLost{from->agent, out->cause}));
}

bool Invariants::is_timed_out(const Reported& report) const {
  const Duration limit = world_.scenario.max_trial_time;
  return report.final && limit > Duration::zero() && report.time_total >= limit;
}

// The messages of an agent are in the journal once, in order and complete.
void Invariants::follow(const FromAgent& from) {
  constexpr const char* kName = "no result is lost or counted twice";
  if (is_stale(from)) ++world_.tally.stale_events;
  if (const auto* report = std::get_if<Reported>(&from.event)) {
    ++world_.tally.results;
    if (is_timed_out(*report)) ++world_.tally.timed_out;
    const std::uint64_t key = attempt_key(report->trial, report->attempt);
    const auto [last, is_first] = journaled_.try_emplace(key, report->iteration);
    // A machine that no driver waits for tells again what it does not know to be journaled.
    if (!is_first && is_stale(from) && report->iteration <= last->second) return;
    if (!is_first && report->iteration != ++last->second) {
      violate(kName, fmt::format("{}: result {} is journaled when {} was due",
                                 name_of(report->trial, report->attempt), report->iteration,
                                 last->second));
    }
  }
  if (std::holds_alternative<CheckpointSaved>(from.event)) ++world_.tally.checkpoints;
  if (std::holds_alternative<PlaceFree>(from.event)) ++world_.tally.places_free;
  const auto* ended = std::get_if<AttemptEnded>(&from.event);
  if (ended == nullptr) return;
  if (is_failure(ended->outcome)) ++world_.tally.failures;
  const std::uint64_t key = attempt_key(ended->trial, ended->attempt);
  // The lead speaks for all. By now an agent may have another number than it was launched under.
  const bool is_of_part = ended->rank > 0 && !is_failure(ended->outcome);
  const bool was_over = ended->cause == "nothing of it runs here" && promised_.contains({key, 1});
  if (is_of_part || was_over || parts_.contains({key, from.agent})) return;
  no_loss_of_a_node_is_a_failure(*ended);
  no_nonsense_ends_well(*ended);
  only_who_hangs_is_said_to(*ended);
  const auto reported = world_.reported.find(key);
  const auto journaled = journaled_.find(key);
  if (reported == world_.reported.end()) return;
  if (journaled == journaled_.end() || journaled->second != reported->second) {
    violate(kName,
            fmt::format("{} ends with result {} journaled, its worker reported {}",
                        name_of(ended->trial, ended->attempt),
                        journaled == journaled_.end() ? 0 : journaled->second, reported->second));
  }
}

// Neither a rank that works alone or saves for long, nor one that waits for it, is called hung.
void Invariants::only_who_hangs_is_said_to(const AttemptEnded& ended) const {
  if (ended.outcome != Outcome::kHung) return;
  const auto hung = world_.hung.find(attempt_key(ended.trial, ended.attempt));
  if (hung != world_.hung.end() && hung->second == ended.rank) return;
  violate("only a rank that hangs is said to hang",
          fmt::format("{}: rank {} {}, {}", name_of(ended.trial, ended.attempt), ended.rank,
                      ended.cause,
                      hung == world_.hung.end() ? "and none hangs"
                                                : fmt::format("and rank {} hangs", hung->second)));
}

void Invariants::follow_launch(const Controller& controller, AgentNumber agent,
                               const Launch& launch) {
  const std::uint64_t key = attempt_key(launch.trial, launch.attempt);
  promised_[{key, launch.node}] = launch;
  if (launch.node > 0) return void(parts_.emplace(key, agent));
  ++world_.tally.launches;
  const auto [last, is_first] = launched_.try_emplace(launch.trial, launch.attempt);
  const bool is_new = is_first || launch.attempt > last->second;
  last->second = launch.attempt;
  const Trial& trial = controller.trials()[launch.trial.value];
  const bool runs = trial.status == TrialStatus::kRunning && trial.attempt == launch.attempt;
  if (is_new && !runs && lost_.contains(agent)) return;  // by a later event of the same turn
  const auto [open, is_only] = open_.try_emplace(launch.trial, open_of(trial));
  if (is_only && is_new) return;
  violate("no trial is started twice",
          fmt::format("{} is launched while attempt {} is known",
                      name_of(launch.trial, launch.attempt), open->second.attempt.value));
}

void Invariants::running_trials_are_the_open_attempts(const Controller& controller) const {
  std::size_t running = 0;
  for (const Trial& trial : controller.trials()) {
    if (trial.status != TrialStatus::kRunning) continue;
    ++running;
    const auto open = open_.find(trial.number);
    if (open != open_.end() && open->second == open_of(trial)) continue;
    violate("reservations equal running trials",
            fmt::format("{} runs for the controller, but was not launched or has ended",
                        name_of(trial.number, trial.attempt)));
  }
  if (running != open_.size()) {
    violate("reservations equal running trials",
            fmt::format("{} trials run, {} attempts are open", running, open_.size()));
  }
  const std::uint32_t limit = world_.scenario.max_concurrent_trials;
  if (limit > 0 && running > limit) {
    violate("no more trials run than max_concurrent_trials",
            fmt::format("{} of {}", running, limit));
  }
}

void Invariants::reservations_equal_running_trials(const Controller& controller) const {
  const ResourceRequest& request = world_.scenario.request;
  std::int64_t cpu_units = 0;
  std::int64_t gpu_units = 0;
  for (const auto& [trial, open] : open_) {
    const ResourceRequest part = part_of(request, static_cast<int>(open.nodes));
    const auto parts = std::ssize(open.others) + (open.lead ? 1 : 0) - std::ssize(open.free);
    cpu_units += parts * part.cpu_units;
    gpu_units += parts * part.gpu_units;
  }
  const Placer& placer = controller.placer();
  if (placer.cpu_units_used() == cpu_units && placer.gpu_units_used() == gpu_units) return;
  violate("reservations equal running trials",
          fmt::format("{} CPU units and {} GPU units are promised to {} trials of {} and {}",
                      placer.cpu_units_used(), placer.gpu_units_used(), open_.size(),
                      request.cpu_units, request.gpu_units));
}

void Invariants::recorded_checkpoints_are_on_disk(const Controller& controller) const {
  constexpr const char* kName = "checkpoints that a record needs are on disk";
  for (const Trial& trial : controller.trials()) {
    for (const CheckpointRecord& record : trial.checkpoints) {
      const CheckpointOrigin at =
          record.origin.value_or(CheckpointOrigin{trial.number, record.iteration, record.attempt});
      const auto* parts = world_.disk.find(at.trial, {at.iteration, at.attempt});
      const std::string name = checkpoint_name(at.iteration, at.attempt);
      if (parts == nullptr) {
        violate(kName, fmt::format("trial {}: {} of trial {} is gone", trial.number.value, name,
                                   at.trial.value));
      }
      if (parts->size() != static_cast<std::size_t>(world_.scenario.request.ranks)) {
        violate(kName, fmt::format("trial {}: {} has the parts of {} ranks only",
                                   trial.number.value, name, parts->size()));
      }
    }
  }
}

void Invariants::before_command(const SimulatedDriver& driver, const Command& command) {
  if (const auto verdict = verdict_of(command))
    world_.verdicts[verdict->first].insert(verdict->second);
  const std::optional<EntryId> whole = std::max(store_.now->last, store_.now->trimmed);
  if (driver.last_appended() && whole >= driver.last_appended()) return;
  violate("a turn is in the journal before its effects", describe(command));
}

void Invariants::before_acknowledgement(const SimulatedDriver& driver, AgentNumber agent,
                                        std::uint64_t sequence) {
  if (driver.is_journaled(agent, sequence)) return;
  violate("what is acknowledged is in the journal",
          fmt::format("message {} of agent number {} is not", sequence, agent.value));
}

// ---- From one driver to the next ----------------------------------------------------------------

void Invariants::driver_ended(const SimulatedDriver& driver) {
  legacy_.reset();
  if (driver.last_appended()) {
    legacy_ = {driver.controller().save(), driver.results(), driver.last_appended(),
               driver.controller().phase() == Phase::kRunning};
  }
}

void Invariants::replayed(const SimulatedDriver& driver) {
  ++world_.tally.drivers;
  if (!store_.now->values.empty()) ++world_.tally.resumed_from_snapshot;
  read_up_to_ = driver.read_up_to();
  if (read_up_to_ == store_.now->last) recorded_checkpoints_are_on_disk(driver.controller());
  // An append whose driver never learned the outcome may be there on top, and so may a snapshot:
  // another driver took it while this one read, or the store has lost entries before it.
  if (!legacy_ || legacy_->last != read_up_to_ || driver.state_of() != *read_up_to_) return;
  if (driver.controller().save() != legacy_->state) {
    violate("replay gives the state that the last driver had", "the states are different");
  }
  if (driver.results() != legacy_->results) {
    violate("no result is lost or counted twice",
            "the loggers' results are different before and after a restart");
  }
}

// The entries that another driver has appended since the replay are handled too.
void Invariants::taken_over(const SimulatedDriver& driver) {
  // A driver that stalled while the store took its epoch may hear of it when another has the next.
  if (driver.last_appended()->epoch < leader_) return;
  leader_ = driver.last_appended()->epoch;
  branch_.reset();
  const bool is_first = store_.ever.size() < 2;
  if (!is_first && store_.ever[store_.ever.size() - 2].id != read_up_to_) ++world_.tally.overtaken;
}

// ---- At the end ---------------------------------------------------------------------------------

void Invariants::at_the_end(const SimulatedDriver& driver, const ResultFiles& files) const {
  const Controller& controller = driver.controller();
  for (const Trial& trial : controller.trials()) {
    if (is_over(trial.status)) continue;
    violate("every trial ends",
            fmt::format("trial {} is {}", trial.number.value, status_name(trial.status)));
  }
  results_are_whole(driver, files);
  recorded_checkpoints_are_on_disk(controller);
  // Else one that had stalled has taken an epoch since, and the replays have its event, too.
  if (store_.ever.back().id.epoch <= driver.epoch()) every_replay_gives_this_state(controller);
  trials_.at_the_end(controller);
}

void Invariants::results_are_whole(const SimulatedDriver& driver, const ResultFiles& files) const {
  constexpr const char* kName = "no result is lost or counted twice";
  const Scenario& scenario = world_.scenario;
  if (files != driver.results()) violate(kName, "the files are not what was recorded");
  const bool may_be_cut_short = scenario.fail_fast || scenario.time_budget > Duration{};
  for (const Trial& trial : driver.controller().trials()) {
    const auto found = files.find(trial.number);
    const std::size_t results = found == files.end() ? 0 : found->second.size();
    const std::uint64_t last = trial.last ? trial.last->iteration : 0;
    // With other values the trainable may end at another iteration, which may be past.
    const bool is_known = trial.replacements == 0 || !scenario.some_end_early;
    const bool ran_through = trial.status == TrialStatus::kTerminated && trial.reason.empty() &&
                             is_known && !may_be_cut_short;
    const bool is_whole = ran_through && !(trial.last && is_timed_out(*trial.last));
    const std::uint64_t due =
        is_whole ? LearningCurve(trial.config).last_iteration(scenario) : last;
    if (results == last && last == due) continue;
    violate(kName, fmt::format("trial {} has {} results in its file, its last is {}, {} were due",
                               trial.number.value, results, last, due));
  }
}

void Invariants::every_replay_gives_this_state(const Controller& controller) const {
  const std::string state = controller.save();
  testing::MemoryStore from_zero;
  for (const Entry& entry : store_.ever) from_zero.append(entry.id, entry.payload);
  testing::MemoryStore from_snapshot(store_.now);
  for (Store* store : {&from_zero, &from_snapshot}) {
    JournaledController replayed(*store, controller_setup(world_.scenario), nullptr);
    replayed.replay();
    if (replayed.controller().save() == state) continue;
    violate(store == &from_zero ? "replay from zero gives the live state"
                                : "replay from the snapshot gives the live state",
            fmt::format("after {} entries", store_.ever.size()));
  }
}

}  // namespace tune::simulator
