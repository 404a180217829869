#include "simulator/simulated_driver.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simulator/describe.h"
#include "simulator/simulated_objects.h"

namespace tune::simulator {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr Time kFlushEvery = milliseconds(200);
// The time from its replay until it takes the epoch: an older driver may still append.
constexpr Time kPreparation = milliseconds(2);

}  // namespace

SimulatedDriver::SimulatedDriver(World& world, StoreContents& store, ResultFiles& files,
                                 Outside outside)
    : world_(world),
      outside_(std::move(outside)),
      store_(world, store),
      logger_(files),
      experiment_(store_, controller_setup(world.scenario), &channel_,
                  world.scenario.snapshot_part) {
  channel_.add_keeper(logger_);
  channel_.add_watcher([this](const Record& record) {
    if (!std::holds_alternative<DriverNotice>(record)) records_.push_back(describe(record));
  });
}

std::optional<AgentNumber> SimulatedDriver::number_of(Identity agent) const {
  return peers_ ? peers_->number_of(std::to_string(agent)) : std::nullopt;
}

bool SimulatedDriver::is_journaled(AgentNumber agent, std::uint64_t sequence) const {
  const auto waiting = unjournaled_.find(agent);
  return waiting == unjournaled_.end() || waiting->second.empty() ||
         waiting->second.front() > sequence;
}

// ---- Steps --------------------------------------------------------------------------------------

void SimulatedDriver::plan(Step step) {
  steps_.push_back(std::move(step));
  outside_.wake();
}

// These steps go before all others that are planned.
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

// Another driver has the journal, or the store is lost.
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
  experiment_.replay();
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
  event.nodes_may_join = event.keeps_joined = scenario.joined;
  peers_.emplace(epoch_);
  try {
    turns_.take_over(event);
  } catch (const Error& error) {
    return give_up(error);
  }
  store_.stop_waiting();
  expect_agents();
  plan_deadline();
  plan_tick();
  do_next({[this] { take_turn_step(); }});
}

void SimulatedDriver::expect_agents() {
  const Nodes& nodes = controller().nodes();
  for (const AgentNumber agent : nodes.all()) {
    const std::string& identity = nodes.hello(agent).identity;
    peers_->expect(agent, identity, nodes.heard(agent), now());
    machine_.on_agent_expected(identity, now());
    ++world_.tally.expected;
    const auto agent_there = static_cast<Identity>(std::stoul(identity));
    if (!outside_.is_seen(agent_there)) continue;
    ++world_.tally.own_kept;
    if (outside_.lives(agent_there)) {
      machine_.on_agent_started(identity, now());
    } else {
      machine_.on_agent_ended(identity, "it has ended while no driver was there");
    }
  }
}

void SimulatedDriver::plan_turn() {
  if (!peers_ || closed_ || std::exchange(turn_is_planned_, true)) return;
  world_.queue.after(world_.about(microseconds(50)), life_, [this] {
    plan([this] {
      turn_is_planned_ = false;
      if (turns_.is_idle()) take_turn_step();
    });
  });
}

// Sends missed messages again, and heartbeats.
void SimulatedDriver::plan_tick() {
  if (closed_ || fate_ != Fate::kLives || std::exchange(tick_is_planned_, true)) return;
  world_.queue.after(kFlushEvery, life_, [this] {
    plan([this] {
      tick_is_planned_ = false;
      read_input();
      machine_.on_time(now(), *peers_);
      act();
      if (fate_ != Fate::kLives) return;
      flush();
      do_next(std::exchange(frames_, {}));
      plan_turn();
      plan_tick();
    });
  });
}

void SimulatedDriver::plan_deadline() {
  const auto deadline = controller().next_deadline();
  if (!deadline) return;
  const Time left = std::max<Time>(*deadline - machine_.experiment_time(now()), Time{});
  world_.queue.after(left, life_, [this] { plan_turn(); });
}

// ---- Input --------------------------------------------------------------------------------------

void SimulatedDriver::agent_started(Identity agent) {
  if (!outside_.is_seen(agent)) return;  // its first word tells of it
  machine_.on_agent_started(std::to_string(agent), now());
}

void SimulatedDriver::hear_frame(Identity agent, std::string frame) {
  inbox_.emplace_back(agent, std::move(frame));
  plan_turn();
}

// A request of a user.
void SimulatedDriver::drain(Identity agent) {
  plan([this, agent] {
    const auto number = number_of(agent);
    if (closed_ || !number || !controller().nodes().contains(*number)) return;
    ++world_.tally.drained;
    order(*number, Drain{"drained"});
  });
}

void SimulatedDriver::give(const UserOrdered& order) {
  plan([this, order] {
    if (closed_ || !peers_) return;
    machine_.on_order(order);
    plan_turn();
  });
}

void SimulatedDriver::see_lost(Identity agent) {
  if (!outside_.is_seen(agent)) return;
  machine_.on_agent_ended(std::to_string(agent), "its process is gone");
  plan_turn();
}

void SimulatedDriver::interrupt(int signal) {
  signals_.push_back(signal);
  plan_turn();
}

void SimulatedDriver::read_input() {
  if (has_room() && world_.chance(world_.scenario.rates.no_room)) {
    ++world_.tally.full_files;
    files_have_room_ = now() + world_.about(world_.scenario.file_delay);
  }
  std::vector<Peers::Told> all;
  for (const auto& [identity, frame] : std::exchange(inbox_, {})) {
    peers_->receive(std::to_string(identity), frame, now(), all);
  }
  for (Peers::Told& told : all) {
    const auto [agent, position] = std::pair(told.agent, told.position);
    if (machine_.on_told(std::move(told))) unjournaled_[agent].push_back(position.sequence);
  }
  for (const int signal : std::exchange(signals_, {})) {
    if (machine_.on_signal(signal)) machine_.on_notice("running trials save and end");
  }
}

void SimulatedDriver::act() {
  for (const DriverAction& action : machine_.take_actions()) {
    std::visit([this](const auto& one) { on(one); }, action);
  }
}

void SimulatedDriver::on(const EndAgent& action) {
  world_.trace("driver", [&] { return fmt::format("ends agent {}", action.identity); });
  outside_.end_agent(static_cast<Identity>(std::stoul(action.identity)));
}

void SimulatedDriver::on(const Say& action) {
  world_.trace("driver", [&] { return action.text; });
  machine_.on_notice(action.text);
}

void SimulatedDriver::on(const Dismiss& action) {
  ++world_.tally.dismissed;
  order(action.agent, Shutdown{"lost", true});
}

void SimulatedDriver::on(const GiveUp& action) {
  ++world_.tally.store_given_up;
  give_up(Error(ErrorCode::kStore, action.how));
}

// ---- Turns --------------------------------------------------------------------------------------

// The steps that follow come before everything else that is planned.
void SimulatedDriver::take_turn_step() {
  if (closed_ || fate_ != Fate::kLives) return;
  if (turns_.is_idle()) read_input();
  if (machine_.ends_at_once()) {
    closed_ = true;
    return;
  }
  const bool was_silent = machine_.store_is_silent();
  try {
    if (!turns_.step()) return plan_retry();
  } catch (const Error& error) {
    return give_up(error);
  }
  if (was_silent) ++world_.tally.store_answered_again;
  std::vector<Step> steps = std::exchange(frames_, {});
  steps.emplace_back([this] { turns_.is_idle() ? end_turn() : take_turn_step(); });
  do_next(std::move(steps));
}

// The turn waits, and nothing else does.
void SimulatedDriver::plan_retry() {
  if (!machine_.store_is_silent()) return;
  world_.queue.after(DriverMachine::kStoreRetry, life_,
                     [this] { plan([this] { take_turn_step(); }); });
}

void SimulatedDriver::end_turn() {
  in_turn_ = false;
  if (controller().is_over() && !machine_.has_notices()) {
    close();
  } else if (machine_.has_more(*peers_) || !inbox_.empty()) {
    plan_turn();
  }
}

void SimulatedDriver::turn_begins(const Turn& turn) {
  outside_.witness->before_turn(*this, turn);
  records_.clear();
}

void SimulatedDriver::turn_is_handled(const Turn& turn, const Effects& effects) {
  for (const Event& event : turn.events) {
    world_.trace("driver", [&] { return "event: " + describe(event); });
  }
  for (const Event& event : turn.events) {
    if (const auto* from = std::get_if<FromAgent>(&event)) unjournaled_[from->agent].pop_front();
  }
  in_turn_ = true;
  ++handled_;
  appended_ = store_.asked();
  outside_.witness->after_turn(*this, turn, effects);
  if (world_.chance(world_.scenario.rates.snapshot)) turns_.want_snapshot();
}

void SimulatedDriver::acknowledge(AgentNumber agent, Link::Position through) {
  outside_.witness->before_acknowledgement(*this, agent, through.sequence);
  peers_->acknowledge(agent, through);
}

void SimulatedDriver::send(AgentNumber agent, const Command& command) {
  outside_.witness->before_command(*this, command);
  order(agent, command);
}

void SimulatedDriver::order(AgentNumber agent, const Command& command) {
  world_.trace("driver", [&] {
    return fmt::format("to agent number {}: {}", agent.value, describe(command));
  });
  peers_->send(agent, command);
}

// The answer is of this moment, whenever it comes.
void SimulatedDriver::ask(const Asking::Question& question, Searcher::Question make) {
  Proposed proposed{question.number, world_.about(world_.scenario.proposal_time), {make()}, {}};
  world_.trace("driver", [&] { return fmt::format("asks question {}", question.number); });
  world_.queue.after(proposed.took, life_, [this, proposed = std::move(proposed)] {
    machine_.on_proposed(proposed);
    plan_turn();
  });
}

// One step a frame, so that any of them may be the last.
void SimulatedDriver::flush() {
  peers_->flush(now(), [this](const std::string& identity, std::string frame) {
    const auto agent = static_cast<Identity>(std::stoul(identity));
    frames_.emplace_back(
        [this, agent, frame = std::move(frame)] { outside_.send_frame(agent, frame); });
    return true;
  });
}

void SimulatedDriver::write_results() {
  logger_.flush();
}

void SimulatedDriver::remove(const RemoveCheckpoint& checkpoint) {
  world_.trace("driver", [&] {
    const CheckpointId& id = checkpoint.checkpoint;
    return fmt::format("removes {} of trial {}", checkpoint_name(id.iteration, id.attempt),
                       checkpoint.trial.value);
  });
  world_.disk.remove(checkpoint.trial, checkpoint.checkpoint);
  remove_objects_of(world_, checkpoint.trial, checkpoint.checkpoint);
}

void SimulatedDriver::remove_unrecorded(const Trial& trial, AttemptNumber lost) {
  world_.trace("driver", [&] {
    return fmt::format("settles trial {} up to attempt {}", trial.number.value, lost.value);
  });
  world_.disk.remove_unrecorded(trial.number, trial.checkpoints, lost);
}

// A snapshot is stored some turns after it was taken.
std::optional<std::string> SimulatedDriver::flushed_results() {
  if (!world_.chance(std::max(world_.scenario.rates.snapshot, 300'000u))) return std::nullopt;
  world_.trace("driver", [] { return "stores a snapshot"; });
  ++world_.tally.snapshots;
  return state_.get();
}

void SimulatedDriver::close() {
  if (std::exchange(closed_, true)) return;
  world_.trace("driver", [] { return "closes"; });
  if (controller().phase() == Phase::kFailed) return;
  for (std::size_t agent = 0; agent < peers_->size(); ++agent) {
    send(AgentNumber{static_cast<std::uint32_t>(agent)}, Shutdown{});
  }
  flush();
  do_next(std::exchange(frames_, {}));
}

}  // namespace tune::simulator
