#include "simulator/simulated_driver.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "simulator/describe.h"

namespace tune::simulator {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr Time kFlushEvery = milliseconds(200);
// From its replay until it takes the epoch: an older driver may still append.
constexpr Time kPreparation = milliseconds(2);

}  // namespace

SimulatedDriver::SimulatedDriver(World& world, StoreContents& store, ResultFiles& files,
                                 Outside outside)
    : world_(world),
      outside_(std::move(outside)),
      store_(world, store),
      logger_(world, files),
      experiment_(store_, controller_setup(world.scenario, replaying_), &logger_) {}

std::optional<AgentNumber> SimulatedDriver::number_of(Identity agent) const {
  const auto found = numbers_.find(agent);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

// ---- Steps
// ----------------------------------------------------------------------------------------

void SimulatedDriver::plan(Step step) {
  steps_.push_back(std::move(step));
  outside_.wake();
}

// Before whatever is planned already.
void SimulatedDriver::do_next(std::vector<Step> steps) {
  if (steps.empty()) return;
  steps_.insert(steps_.begin(), std::make_move_iterator(steps.begin()),
                std::make_move_iterator(steps.end()));
  outside_.wake();
}

void SimulatedDriver::step() {
  const Step next = std::move(steps_.front());
  steps_.pop_front();
  next();
}

void SimulatedDriver::end() {
  fate_ = Fate::kOver;
  life_.reset();
  steps_.clear();
}

// The journal is another's, or the store is lost.
void SimulatedDriver::give_up(const Error& error) {
  const bool superseded = dynamic_cast<const SupersededError*>(&error) != nullptr;
  world_.trace("driver", [&] { return fmt::format("epoch {}: {}", epoch_, error.what()); });
  fate_ = superseded ? Fate::kSuperseded : Fate::kStoreLost;
  steps_.clear();
}

void SimulatedDriver::start(Wish wish) {
  plan([this, wish] {
    try {
      replay();
    } catch (const Error& error) {
      return give_up(error);
    }
    world_.queue.after(world_.about(kPreparation), life_,
                       [this, wish] { plan([this, wish] { take_epoch(wish); }); });
  });
}

void SimulatedDriver::replay() {
  replaying_ = true;
  experiment_.replay();
  replaying_ = false;
  for (const Trial& trial : controller().trials()) {
    if (trial.status == TrialStatus::kRunning) interrupted_.push_back(trial);
  }
  time_base_ = experiment_.now();
  outside_.witness->replayed(*this);
}

void SimulatedDriver::take_epoch(const Wish& wish) {
  const Scenario& scenario = world_.scenario;
  DriverStarted event;
  event.epoch = epoch_ = experiment_.next_epoch();
  event.retry_errored = wish.retry_errored;
  event.num_samples = wish.num_samples;
  event.max_failures = scenario.max_failures;
  event.max_concurrent_trials = scenario.max_concurrent_trials;
  event.time_budget = scenario.time_budget;
  started_ = now();
  is_listening_ = true;
  commit({event});
  plan_deadline();
  plan_tick();
  plan_turn();
}

void SimulatedDriver::plan_turn() {
  if (!is_listening_ || closed_ || std::exchange(turn_is_planned_, true)) return;
  world_.queue.after(world_.about(microseconds(50)), life_, [this] {
    plan([this] {
      turn_is_planned_ = false;
      collect_and_commit();
    });
  });
}

// What was not acknowledged in time is sent again, and heartbeats.
void SimulatedDriver::plan_tick() {
  if (closed_ || fate_ != Fate::kLives || std::exchange(tick_is_planned_, true)) return;
  world_.queue.after(kFlushEvery, life_, [this] {
    plan([this] {
      tick_is_planned_ = false;
      flush();
      plan_tick();
    });
  });
}

void SimulatedDriver::plan_deadline() {
  const auto deadline = controller().next_deadline();
  if (!deadline) return;
  const Time left = std::max<Time>(*deadline - experiment_now(), Time{});
  world_.queue.after(left, life_, [this] { plan_turn(); });
}

// ---- What comes in
// --------------------------------------------------------------------------------

void SimulatedDriver::hear_frame(Identity agent, std::string frame) {
  inbox_.emplace_back(agent, std::move(frame));
  plan_turn();
}

void SimulatedDriver::reconnected(Identity agent) {
  if (const auto number = number_of(agent)) peers_[number->value].link.reconnected();
}

void SimulatedDriver::see_lost(Identity agent) {
  lost_.push_back(agent);
  plan_turn();
}

void SimulatedDriver::interrupt(int signal) {
  signal_ = signal;
  plan_turn();
}

std::vector<Event> SimulatedDriver::receive() {
  std::vector<Event> events;
  for (auto& [identity, frame] : std::exchange(inbox_, {})) {
    const auto [known, is_new] =
        numbers_.try_emplace(identity, AgentNumber{static_cast<std::uint32_t>(peers_.size())});
    if (is_new) peers_.push_back({identity, Link(epoch_)});
    Peer& peer = peers_[known->second.value];
    for (const std::string& message : peer.link.receive(frame)) {
      ++received_;
      AgentEvent event = decoded<AgentEvent>(message);
      // Who was declared lost does not join again.
      if (peer.is_lost && std::holds_alternative<AgentHello>(event)) event = Warning{};
      events.emplace_back(FromAgent{known->second, std::move(event)});
    }
  }
  if (plant() == Plant::kAcknowledgedBeforeAppend) acknowledge();
  return events;
}

std::vector<Event> SimulatedDriver::collect() {
  std::vector<Event> events = receive();
  if (signal_) events.emplace_back(InterruptRequested{*std::exchange(signal_, {})});
  const auto deadline = controller().next_deadline();
  if (deadline && experiment_now() >= *deadline) events.emplace_back(DeadlineReached{});
  if (!events.empty() || lost_.empty()) return events;
  for (Identity identity : std::exchange(lost_, {})) {
    const auto number = number_of(identity);
    if (!number) {
      lost_.push_back(identity);  // perhaps a frame of it is still under way
      continue;
    }
    peers_[number->value].is_lost = true;
    events.emplace_back(AgentLost{*number, "its process is gone"});
  }
  return events;
}

// ---- Turns
// ----------------------------------------------------------------------------------------

namespace {

// As a plant wants them.
void results_last(std::vector<Event>& events) {
  std::ranges::stable_partition(events, [](const Event& event) {
    const auto* from = std::get_if<FromAgent>(&event);
    return from == nullptr || !std::holds_alternative<Reported>(from->event);
  });
}

}  // namespace

void SimulatedDriver::collect_and_commit() {
  if (closed_ || fate_ != Fate::kLives) return;
  std::vector<Event> events = collect();
  if (!events.empty()) commit(std::move(events));
  const bool knows_lost =
      std::ranges::any_of(lost_, [this](Identity agent) { return number_of(agent).has_value(); });
  if (knows_lost || !inbox_.empty()) plan_turn();
}

void SimulatedDriver::commit(std::vector<Event> events) {
  if (plant() == Plant::kCheckpointBeforeResult) results_last(events);
  Turn turn{experiment_now(), WallTime{now()}, std::move(events)};
  outside_.witness->before_turn(*this, turn);
  const Turn told = turn;
  distort(turn.events);
  std::vector<Trial> ran;
  if (plant() == Plant::kForgottenRelease) {
    for (const Trial& trial : controller().trials()) {
      if (trial.placement) ran.push_back(trial);
    }
  }
  if (plant() == Plant::kAppendAfterEffect && turns_ > 0) store_.hold_back();
  Effects effects;
  try {
    records_.clear();
    const auto record = [this](const Record& one) { records_.push_back(describe(one)); };
    effects = turns_ == 0 ? take_over(turn) : experiment_.commit(turn, record);
  } catch (const Error& error) {
    return give_up(error);
  }
  for (const Event& event : turn.events) {
    world_.trace("driver", [&] { return "event: " + describe(event); });
    if (std::holds_alternative<FromAgent>(event)) ++committed_;
  }
  ++turns_;
  appended_ = store_.asked();
  forget_releases(ran);
  outside_.witness->after_turn(*this, told, effects);
  plan_effects(effects);
}

Effects SimulatedDriver::take_over(const Turn& turn) {
  JournaledController::Takeover takeover = experiment_.take_over(turn);
  time_base_ = experiment_.now();
  started_ = now();
  if (has_left_files_) return std::move(takeover.effects);
  for (TrialNumber trial : takeover.unsettled) {
    world_.disk.remove_unrecorded(trial, controller().trials()[trial.value].checkpoints);
  }
  return std::move(takeover.effects);
}

void SimulatedDriver::plan_effects(const Effects& effects) {
  in_turn_ = true;
  std::vector<Step> steps;
  const auto plan = [&steps](Step step) { steps.push_back(std::move(step)); };
  plan([this] { acknowledge(); });
  plan([this, commands = effects.commands] {
    for (const auto& [agent, command] : commands) send(agent, command);
    flush();
  });
  if (plant() == Plant::kAppendAfterEffect) plan([this] { store_.settle(); });
  plan([this] { logger_.flush(); });
  for (const RemoveCheckpoint& removal : effects.removals) {
    plan([this, removal] {
      world_.trace("driver", [&] {
        return fmt::format("removes checkpoint {} of trial {}", removal.iteration,
                           removal.trial.value);
      });
      world_.disk.remove(removal.trial, removal.iteration);
      if (plant() != Plant::kNeededCheckpointRemoved) return;
      const Trial& trial = controller().trials()[removal.trial.value];
      world_.disk.remove(trial.number, trial.checkpoints.back().iteration);
    });
  }
  plan([this] { keep_journal_short(); });
  plan([this] {
    in_turn_ = false;
    if (controller().is_over()) close();
  });
  do_next(std::move(steps));
}

// A snapshot is stored some turns after it was taken: its files must be on disk first.
void SimulatedDriver::keep_journal_short() {
  const std::uint32_t rate = world_.scenario.rates.snapshot;
  if (!snapshot_) {
    if (experiment_.snapshot_is_due() || world_.chance(rate)) snapshot_ = experiment_.snapshot();
    return;
  }
  if (!world_.chance(std::max(rate, 300'000u))) return;
  world_.trace("driver", [] { return "stores a snapshot"; });
  try {
    experiment_.store(*std::exchange(snapshot_, {}));
    ++world_.tally.snapshots;
  } catch (const Error& error) {
    give_up(error);
  }
}

void SimulatedDriver::acknowledge() {
  outside_.witness->before_acknowledgement(*this);
  for (Peer& peer : peers_) peer.link.acknowledge();
}

void SimulatedDriver::send(AgentNumber agent, const Command& command) {
  world_.trace("driver", [&] {
    return fmt::format("to agent number {}: {}", agent.value, describe(command));
  });
  outside_.witness->before_command(*this, command);
  peers_[agent.value].link.send(encoded(command));
  if (plant() == Plant::kStartedTwice && std::holds_alternative<SetupExperiment>(command)) {
    launch_again(agent);
  }
}

// One step a peer with something to say, so that any of them may be the last.
void SimulatedDriver::flush() {
  std::vector<Step> frames;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    std::vector<std::string> due = peer.link.frames(now());
    if (due.empty() && now() - peer.last_sent >= std::chrono::seconds(1)) {
      due.push_back(peer.link.heartbeat());
    }
    for (std::string& frame : due) {
      peer.last_sent = now();
      frames.push_back([this, identity = peer.identity, frame = std::move(frame)] {
        outside_.send_frame(identity, frame);
      });
    }
  }
  do_next(std::move(frames));
}

void SimulatedDriver::close() {
  if (std::exchange(closed_, true)) return;
  world_.trace("driver", [] { return "closes"; });
  if (controller().phase() == Phase::kFailed) return;
  for (std::size_t agent = 0; agent < peers_.size(); ++agent) {
    send(AgentNumber{static_cast<std::uint32_t>(agent)}, Shutdown{});
  }
  flush();
}

// ---- Plants
// ---------------------------------------------------------------------------------------

namespace {

// The attempt that an event speaks of; nothing when it speaks of none.
struct Speaks {
  TrialNumber trial;
  AttemptNumber* attempt;
};
std::optional<Speaks> attempt_of(AgentEvent& event) {
  return std::visit(
      [](auto& one) -> std::optional<Speaks> {
        if constexpr (requires { one.attempt; }) {
          return Speaks{one.trial, &one.attempt};
        } else {
          return std::nullopt;
        }
      },
      event);
}

}  // namespace

void SimulatedDriver::distort(std::vector<Event>& events) const {
  if (plant() != Plant::kLateVerdict) return;
  for (Event& event : events) {
    auto* from = std::get_if<FromAgent>(&event);
    const auto speaks = from == nullptr ? std::nullopt : attempt_of(from->event);
    if (!speaks) continue;
    const Trial& trial = controller().trials()[speaks->trial.value];
    if (!trial.placement) continue;
    from->agent = trial.placement->agent;
    *speaks->attempt = trial.attempt;
  }
}

// A controller that forgets a release has promised resources to nobody.
void SimulatedDriver::forget_releases(const std::vector<Trial>& ran) {
  for (const Trial& trial : ran) {
    if (controller().trials()[trial.number.value].placement) continue;
    auto& placer = const_cast<Placer&>(controller().placer());
    [[maybe_unused]] const bool kept = placer.reserve(*trial.placement, world_.scenario.request);
  }
}

void SimulatedDriver::launch_again(AgentNumber agent) {
  for (const Trial& trial : std::exchange(interrupted_, {})) {
    Launch launch;
    launch.trial = trial.number;
    launch.attempt = trial.attempt;
    launch.config = trial.config;
    launch.ranks = static_cast<std::uint32_t>(world_.scenario.request.ranks);
    launch.cpu_units = world_.scenario.request.cpu_units;
    launch.gpus = trial.placement->gpus;
    launch.until = trial.until;
    peers_[agent.value].link.send(encoded(Command(launch)));
  }
}

}  // namespace tune::simulator
