#include "simulator/simulation.h"

#include <algorithm>
#include <csignal>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune::simulator {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t kMaxEvents = 2'000'000;
// Each silence of the store may end a driver.
constexpr std::size_t kMaxDrivers = 30 + SimulatedStore::kAllSilences;
constexpr Time kAgentEnd =
    std::chrono::seconds(30);  // that a driver waits for its agents when all is over
constexpr int kLongPause = 2 * kPatience;  // between two drivers, in leases
constexpr Time kInterruptGrace = std::chrono::seconds(30);  // that running trials have to save
constexpr Time kUserAway = std::chrono::milliseconds(20);   // that a sweep waits for its user

}  // namespace

Simulation::Simulation(Scenario scenario, bool traced)
    : world_(std::move(scenario)), links_(world_, ends_of_links()), invariants_(world_, store_) {
  world_.traced = traced;
  world_.wait = [this](Time duration) { wait(duration); };
  wish_.num_samples = world_.scenario.num_samples;
  for (const AccidentPlan& accident : world_.scenario.accidents) {
    world_.queue.after(accident.at, life_, [this, &accident] { meet(accident); });
  }
  for (const OrderPlan& order : world_.scenario.orders) {
    world_.queue.after(order.at, life_, [this, &order] { give(order); });
  }
}

Verdict Simulation::run() {
  Verdict verdict;
  try {
    start_driver();
    while (!finished_) happen();
  } catch (Violation& violation) {
    verdict.violation = std::move(violation);
  } catch (const Error& error) {
    verdict.violation = Violation{"nothing is thrown", error.what()};
  }
  verdict.events = events_;
  for (const Entry& entry : store_.ever) verdict.journal += to_string(entry.id) + entry.payload;
  verdict.tally = world_.tally;
  return verdict;
}

// Runs one event, and checks the promises after it.
void Simulation::happen() {
  constexpr const char* kName = "nothing waits for ever";
  if (++events_ > kMaxEvents) violate(kName, fmt::format("{} events", events_));
  if (!world_.queue.run_next()) violate(kName, "nothing will happen");
  const Time now = world_.queue.now();
  if (now - last_progress_ > longest_wait()) {
    violate(kName, fmt::format("nothing was journaled for {:g} s",
                               std::chrono::duration<double>(now - last_progress_).count()));
  }
  const std::size_t progress = store_.ever.size() + serial_;
  if (std::exchange(progress_, progress) != progress) last_progress_ = now;
  Invariants::Agents agents;
  for (const auto& [identity, node] : nodes_) agents.push_back(node.agent.get());
  const auto leads = drivers_.find(serial_);
  const bool is_there = leads != drivers_.end() && !leads->second.is_leaving;
  invariants_.after_event(agents, is_there ? leads->second.process.get() : nullptr);
}

// The sum of all time-outs.
Time Simulation::longest_wait() const {
  const Scenario& scenario = world_.scenario;
  const Time driver = DriverMachine::kAgentSilence + 2 * DriverMachine::kLookEvery + kAgentEnd +
                      kInterruptGrace + SimulatedStore::kSlowCalls * 2 * scenario.store_delay +
                      SimulatedStore::kSilences * 2 * scenario.store_silence +
                      scenario.store_patience + DriverMachine::kStoreFarewell;
  const Time agent = 2 * scenario.hang_timeout + ZygoteSupervisor::kForkLimit +
                     ZygoteSupervisor::kLongestPause + Attempt::kTermGrace +
                     WatchedTime::kLongestTurn + AgentMachine::kDriverFirst +
                     SetupExperiment().save_grace + AgentMachine::kFarewell;
  const Time lease = scenario.joined ? (8 + kLongPause) * scenario.lease : Time{};
  // The next heartbeat shows a missed frame; the heartbeat of the other side asks for it.
  const Time network = 2 * Link::kHeartbeatEvery + 200 * scenario.network_delay;
  // A fetch meets one outage after the other, at worst.
  const Time objects =
      scenario.objects ? ObjectCarrier::kFetchPatience + ObjectCarrier::kLongestPause : Time{};
  return driver + agent + network + lease + objects + 2 * scenario.step + 20 * scenario.file_delay;
}

// Within an event: one process waits, and the others do not.
void Simulation::wait(Time duration) {
  bool is_over = false;
  world_.queue.after(duration, life_, [&is_over] { is_over = true; });
  while (!is_over && !finished_) happen();
}

// ---- Drivers ------------------------------------------------------------------------------------

SimulatedDriver* Simulation::driver(Serial serial) {
  const auto found = drivers_.find(serial);
  return found == drivers_.end() ? nullptr : found->second.process.get();
}

void Simulation::start_driver() {
  if (serial_ > kMaxDrivers) violate("every trial ends", "too many drivers");
  world_.trace("world", [&] { return fmt::format("driver {} starts", serial_); });
  zygotes_ = 0;
  const Serial serial = serial_;
  Driver& one = drivers_[serial];
  SimulatedDriver::Outside outside;
  outside.send_frame = [this, serial](Identity agent, std::string frame) {
    if (Connection* way = way_to(agent, serial))
      way->send(Connection::To::kAgent, std::move(frame));
  };
  outside.end_agent = [this](Identity agent) {
    if (const auto node = nodes_.find(agent); node != nodes_.end()) node->second.agent->die();
  };
  outside.is_seen = [this](Identity agent) {
    return !world_.scenario.joined || world_.scenario.is_own(places_.at(agent));
  };
  outside.lives = [this](Identity agent) { return nodes_.contains(agent); };
  outside.wake = [this, serial] { plan_advance(serial); };
  outside.witness = &invariants_;
  one.process = std::make_unique<SimulatedDriver>(world_, store_, files_, std::move(outside));
  std::set<std::size_t> taken;  // by agents that have outlived their driver
  for (const auto& [identity, node] : nodes_) {
    taken.insert(node.agent->node());
    if (world_.scenario.is_own(node.agent->node())) one.process->agent_started(identity);
    reconnect(identity);
  }
  for (std::size_t node = 0; node < world_.scenario.nodes.size(); ++node) {
    if (taken.contains(node)) continue;
    world_.queue.after(world_.about(milliseconds(1)), one.life,
                       [this, node] { start_agent(node); });
  }
  one.process->start(wish_);
}

// The connection to that agent; from a stalled driver, to the process that has its address now.
Connection* Simulation::way_to(Identity agent, Serial from) {
  if (const auto node = nodes_.find(agent); node != nodes_.end())
    return node->second.connection.get();
  if (from == serial_) return nullptr;
  for (const auto& [identity, node] : nodes_) {
    if (node.agent->node() != places_.at(agent)) continue;
    ++world_.tally.late_frames;
    return node.connection.get();
  }
  return nullptr;
}

void Simulation::plan_advance(Serial serial) {
  Driver& one = drivers_.at(serial);
  if (one.is_stalled || one.is_in_step || std::exchange(one.is_planned, true)) return;
  world_.queue.after(world_.about(microseconds(5)), one.life, [this, serial] { advance(serial); });
}

void Simulation::advance(Serial serial) {
  Driver& one = drivers_.at(serial);
  one.is_planned = false;
  if (!one.process->has_steps()) return;
  if (meets_its_end(serial)) return;
  one.is_in_step = true;
  one.process->step();
  one.is_in_step = false;
  if (one.is_removed) return void(drivers_.erase(serial));
  ++one.steps;
  if (one.process->turns() == 1) part_files(one);
  if (serial == serial_ && one.process->controller().waits_for_user() &&
      !std::exchange(comes_back_, true)) {
    world_.queue.after(world_.about(kUserAway), life_, [this] { come_back(); });
  }
  if (one.process->has_steps()) plan_advance(serial);
  check_fate(serial);
}

// The driver that has taken over writes the files, and no driver before it.
void Simulation::part_files(const Driver& leader) {
  for (auto& [serial, one] : drivers_) {
    const std::uint64_t epoch = one.process->epoch();
    if (epoch > 0 && epoch < leader.process->epoch()) one.process->leave_files();
  }
}

// Whether the planned end of this driver comes before its next step.
bool Simulation::meets_its_end(Serial serial) {
  if (serial != serial_) return false;
  Driver& one = drivers_.at(serial);
  const DriverLife& life = plan();
  if (life.interrupt_at == one.steps) {
    world_.trace("world", [] { return "the driver is interrupted"; });
    one.process->interrupt(SIGINT);
    if (life.agents_are_told_to_end) {
      for (auto& [identity, node] : nodes_) node.agent->tell_to_end();
    }
  }
  if (one.is_leaving || life.end == DriverLife::End::kNone || one.steps < life.end_at) return false;
  switch (life.end) {
    case DriverLife::End::kKilled:
      world_.trace("world", [] { return "the driver is killed"; });
      leave(life.agents_die_at_once);
      return true;
    case DriverLife::End::kStalled:
      if (one.process->is_in_turn()) ++world_.tally.stalled_within_turn;
      world_.trace("world", [] { return "the driver stalls"; });
      one.is_stalled = true;
      leave(life.agents_die_at_once);
      return true;
    case DriverLife::End::kStoreLost:
      one.process->store().fall_silent_soon(life.lost_in, life.lost_for);
      return false;
    case DriverLife::End::kNone:
      break;
  }
  return false;
}

void Simulation::check_fate(Serial serial) {
  Driver& one = drivers_.at(serial);
  const SimulatedDriver::Fate fate = one.process->fate();
  if (fate == SimulatedDriver::Fate::kSuperseded) {
    ++world_.tally.drivers_superseded;
    if (serial != serial_) return remove(serial);
    // A stalled driver went on in time to take the epoch that both wanted, or the write by which it
    // took the epoch came late. It ends with this one.
    const bool contested = world_.tally.late_writes > 0 ||
                           std::ranges::any_of(world_.scenario.lives | std::views::take(serial),
                                               [](const DriverLife& life) {
                                                 return life.end == DriverLife::End::kStalled;
                                               });
    if (!contested) violate("only another driver supersedes", "there was none");
    remove_all_but(serial);
    return leave(!world_.scenario.joined);
  }
  const bool is_done = one.process->is_closed() || fate == SimulatedDriver::Fate::kStoreLost;
  if (serial != serial_ && is_done) return remove(serial);
  if (one.is_leaving || serial != serial_) return;
  if (fate == SimulatedDriver::Fate::kStoreLost) {
    // The lock fences off a stalled driver only until the next one has its epoch. When that one
    // fails, the files were put in order all the same, and the stalled one must not go on.
    remove_all_but(serial);
    return leave(!world_.scenario.joined);
  }
  if (!one.process->is_closed() || one.process->has_steps()) return;
  if (one.process->controller().phase() == Phase::kFailed) return leave(true);
  one.is_leaving = one.is_closed = true;
  if (nodes_.empty()) return driver_gone();
  world_.queue.after(kAgentEnd, one.life, [this] { end_agents(false); });
  world_.queue.after(2 * kAgentEnd, one.life, [this] { all_agents_are_gone(); });
}

void Simulation::all_agents_are_gone() const {
  if (nodes_.empty()) return;
  violate("an agent of an experiment that is over ends",
          fmt::format("agent {} is still there", nodes_.begin()->first));
}

// A driver that waits for the store is still to come back from there.
void Simulation::remove(Serial serial) {
  Driver& one = drivers_.at(serial);
  if (one.is_in_step) {
    one.is_removed = true;
  } else {
    drivers_.erase(serial);
  }
}

void Simulation::remove_all_but(Serial serial) {
  const auto all = drivers_ | std::views::keys;
  for (const Serial other : std::vector<Serial>(all.begin(), all.end())) {
    if (other != serial) remove(other);
  }
}

// The driver acts no more. Its agents end, in order or at once; then the next driver comes. Those that
// have joined go on without it.
void Simulation::leave(bool agents_die) {
  Driver& one = drivers_.at(serial_);
  one.is_leaving = true;
  one.life = new_life();
  one.is_planned = false;
  invariants_.driver_ended(*one.process);
  if (!one.is_stalled) one.process->end();
  for (auto& [identity, node] : nodes_) node.connection->cut();
  const bool go_on = world_.scenario.joined && !agents_die;
  if (nodes_.empty() || go_on) return driver_gone();
  end_agents(agents_die);
}

void Simulation::end_agents(bool at_once) {
  for (auto& [identity, node] : nodes_) {
    SimulatedAgent* agent = node.agent.get();
    if (at_once) {
      agent->die();
    } else if (world_.scenario.joined) {
      ++world_.tally.found_over;
      agent->go_on();
      agent->experiment_over();
    } else {
      agent->go_on();
      agent->driver_gone();
    }
  }
}

// The newest driver is gone, or stalled, and so is everything it had.
void Simulation::driver_gone() {
  const Driver& one = drivers_.at(serial_);
  const bool is_done = one.is_closed && one.process->controller().phase() == Phase::kFinished &&
                       invariants_.leads(*one.process);
  const DriverLife& life = plan();
  const bool goes_on =
      (life.retry_errored || life.more_samples > 0) && serial_ < world_.scenario.lives.size();
  if (is_done && !goes_on) {
    invariants_.at_the_end(*one.process, files_);
    finished_ = true;
    return;
  }
  wish_.retry_errored = life.retry_errored;
  wish_.num_samples += life.more_samples;
  if (one.is_closed) invariants_.driver_ended(*one.process);
  const bool is_stalled = one.is_stalled;
  if (is_stalled) {
    const Time pause = milliseconds(world_.chance(500'000) ? 3 : 30);
    world_.queue.after(world_.about(pause), life_, [this, serial = serial_] { wake(serial); });
  } else {
    remove(serial_);
  }
  broken_.clear();
  ++serial_;
  Time pause = world_.about(milliseconds(3));
  // Until agents that have joined lose their patience, now and then.
  if (world_.scenario.joined && !is_stalled && world_.chance(100'000)) {
    pause = world_.between(pause, kLongPause * world_.scenario.lease);
  }
  world_.queue.after(pause, life_, [this] { start_driver(); });
}

void Simulation::wake(Serial serial) {
  const auto found = drivers_.find(serial);
  if (found == drivers_.end() || !std::exchange(found->second.is_stalled, false)) return;
  world_.trace("world", [] { return "the stalled driver goes on"; });
  found->second.process->interrupt(SIGTERM);
  plan_advance(serial);
}

// ---- Users --------------------------------------------------------------------------------------

void Simulation::give(const OrderPlan& plan) {
  SimulatedDriver* leader = driver(serial_);
  if (leader == nullptr) return;
  const Controller& controller = leader->controller();
  UserOrdered order;
  order.kind = plan.kind;
  order.user = "ada";
  order.text = "on a whim";
  const auto trials = static_cast<std::int64_t>(controller.trials().size());
  if (trials > 0) order.trial = {static_cast<std::uint32_t>(world_.random.integer(0, trials))};
  order.num_samples = controller.num_samples() + world_.random.integer(-2, 4);
  Config config;
  if (!world_.scenario.asks) config.set("cell", 0);
  if (world_.chance(500'000)) config.set("x", 0.5);
  order.config = pack(config);
  leader->give(order);
}

// Whoever has paused trials lets them go on when nothing else is left.
void Simulation::come_back() {
  comes_back_ = false;
  SimulatedDriver* leader = driver(serial_);
  if (leader == nullptr || !leader->controller().waits_for_user()) return;
  ++world_.tally.comebacks;
  for (const TrialNumber trial : leader->controller().held()) {
    UserOrdered order;
    order.kind = OrderKind::kUnpause;
    order.trial = trial;
    order.user = "ada";
    leader->give(order);
  }
}

// ---- Agents -------------------------------------------------------------------------------------

void Simulation::start_agent(std::size_t node) {
  const Identity identity = ++last_identity_;
  const Serial serial = serial_;
  world_.trace("world", [&] { return fmt::format("agent {} starts on node {}", identity, node); });
  places_[identity] = node;
  drivers_.at(serial).process->agent_started(identity);
  Node& one = nodes_[identity];
  connect(identity, serial);
  one.agent = std::make_unique<SimulatedAgent>(
      world_, identity, node,
      SimulatedAgent::Outside{[this, identity](std::string frame) {
                                const auto found = nodes_.find(identity);
                                if (found == nodes_.end()) return;
                                found->second.connection->send(Connection::To::kDriver,
                                                               std::move(frame));
                              },
                              [this, identity] { agent_gone(identity); },
                              [this, left = plan().zygote_restarts_failing](bool again) mutable {
                                const bool fails =
                                    again ? left-- > 0 : ++zygotes_ == plan().failing_zygote;
                                return fails ? failing_fate(again) : ZygoteFate::kLoads;
                              },
                              &links_});
  if (world_.chance(world_.scenario.rates.agent_silent)) {
    ++world_.tally.silent_agents;
    hang(*one.agent);
  }
}

// An agent's way to that driver, and back.
void Simulation::connect(Identity identity, Serial serial) {
  nodes_[identity].connection = std::make_unique<Connection>(
      world_,
      [this, serial, identity](std::string frame) {
        SimulatedDriver* one = driver(serial);
        if (one != nullptr) one->hear_frame(identity, std::move(frame));
      },
      [this, identity](const std::string& frame) {
        const auto found = nodes_.find(identity);
        if (found != nodes_.end() && found->second.agent) found->second.agent->hear_frame(frame);
      });
}

// An agent that has joined finds the newest driver a little after it listens.
void Simulation::reconnect(Identity identity) {
  const Serial serial = serial_;
  SimulatedAgent& agent = *nodes_.at(identity).agent;
  const Time delay = world_.about(milliseconds(20));
  agent.cut_off_until(world_.queue.now() + delay);
  world_.queue.after(delay, drivers_.at(serial).life, [this, serial, identity] {
    const auto found = nodes_.find(identity);
    if (found == nodes_.end()) return;
    connect(identity, serial);
    const Time reachable_at = found->second.agent->reachable_at();
    const Time now = world_.queue.now();
    if (reachable_at > now) found->second.connection->lose(reachable_at - now);
  });
}

// The first zygote of a node that says why it cannot load has bad input; other failures may be
// tried again.
ZygoteFate Simulation::failing_fate(bool again) {
  if (!again) return ZygoteFate::kCannotLoad;
  const auto kind = world_.random.integer(0, 4);
  return kind == 0   ? ZygoteFate::kCannotLoad
         : kind == 1 ? ZygoteFate::kDiesLoading
         : kind == 2 ? ZygoteFate::kLoadsForEver
                     : ZygoteFate::kCannotStart;
}

// Every process of the agent is reaped: only now the driver may learn of it.
void Simulation::agent_gone(Identity identity) {
  world_.trace("world", [&] { return fmt::format("agent {} is gone", identity); });
  const auto found = nodes_.find(identity);
  const std::size_t node = found->second.agent->node();
  found->second.connection->close();
  broken_.push_back(std::move(found->second.connection));
  nodes_.erase(found);
  const auto leads = drivers_.find(serial_);
  if (leads == drivers_.end()) return;
  if (leads->second.is_leaving) {
    if (nodes_.empty()) driver_gone();
    return;
  }
  ++world_.tally.agents_lost;
  const Serial serial = serial_;
  Life& life = leads->second.life;
  // Its last message may still be under way then.
  const Time notice = world_.chance(500'000) ? microseconds(20) : microseconds(2000);
  world_.queue.after(world_.about(notice), life, [this, serial, identity] {
    if (SimulatedDriver* one = driver(serial)) one->see_lost(identity);
  });
  world_.queue.after(world_.about(milliseconds(20)), life, [this, node] { start_agent(node); });
}

SimulatedAgent* Simulation::agent_of(Identity identity) {
  const auto found = nodes_.find(identity);
  return found == nodes_.end() ? nullptr : found->second.agent.get();
}

SimulatedLinks::Ends Simulation::ends_of_links() {
  return {[this](Identity to, std::uint64_t attempt, std::uint32_t node, const std::string& frame) {
            if (SimulatedAgent* agent = agent_of(to)) agent->hear_link(attempt, node, frame);
          },
          [this](Identity to, std::uint64_t attempt, std::uint32_t node) {
            if (SimulatedAgent* agent = agent_of(to)) agent->link_is_broken(attempt, node);
          },
          [this](Identity to, std::uint64_t attempt) {
            if (SimulatedAgent* agent = agent_of(to)) agent->notice_loss(attempt);
          },
          [this](SimulatedLinks::Identity of, std::uint64_t attempt) {
            const SimulatedAgent* agent = agent_of(of);
            return agent != nullptr && agent->had_ranks(attempt);
          }};
}

// ---- Accidents ----------------------------------------------------------------------------------

SimulatedAgent* Simulation::any_agent() {
  if (nodes_.empty()) return nullptr;
  auto chosen = nodes_.begin();
  std::advance(chosen, world_.random.integer(0, static_cast<std::int64_t>(nodes_.size())));
  return chosen->second.agent.get();
}

void Simulation::meet(const AccidentPlan& accident) {
  SimulatedAgent* agent = accident.at_link ? agent_of(links_.any_end()) : any_agent();
  if (agent == nullptr && accident.at_link) {
    const Time later = world_.about(std::max<Time>(milliseconds(1), world_.queue.now() / 50));
    return world_.queue.after(later, life_, [this, &accident] { meet(accident); });
  }
  if (agent == nullptr) return;
  switch (accident.kind) {
    case AccidentPlan::Kind::kAgentDies:
      return agent->die();
    case AccidentPlan::Kind::kAgentHangs:
      return hang(*agent);
    case AccidentPlan::Kind::kAgentToldToEnd:
      return agent->tell_to_end();
    case AccidentPlan::Kind::kZygoteDies:
      return agent->kill_zygote();
    case AccidentPlan::Kind::kZygoteHangs:
      return agent->hang_zygote();
    case AccidentPlan::Kind::kWorkerDies:
      return agent->kill_worker();
    case AccidentPlan::Kind::kConnectionLost:
      world_.trace("world",
                   [&] { return fmt::format("agent {} loses its connection", agent->identity()); });
      return nodes_.at(agent->identity()).connection->lose(world_.about(milliseconds(20)));
    case AccidentPlan::Kind::kAgentJoins:
      if (!drivers_.contains(serial_) || drivers_.at(serial_).is_leaving) return;
      if (!world_.scenario.is_own(agent->node())) start_agent(agent->node());  // beside a first one
      return;
    case AccidentPlan::Kind::kNodeDrains:
      if (drivers_.contains(serial_)) drivers_.at(serial_).process->drain(agent->identity());
      return;
    case AccidentPlan::Kind::kAgentCutOff:
      return cut_off(*agent);
    case AccidentPlan::Kind::kLinkBreaks:
      links_.break_one();
      return;
  }
}

void Simulation::cut_off(SimulatedAgent& agent) {
  world_.trace("world", [&] { return fmt::format("agent {} is cut off", agent.identity()); });
  ++world_.tally.cut_off;
  const Time duration = world_.between(world_.scenario.lease / 4, world_.scenario.lease * 3);
  // From its driver, from other agents, or from all.
  const auto from = world_.scenario.nodes_of_group > 0 ? world_.random.integer(0, 3) : 0;
  if (from != 0) {
    links_.hold_up(agent.identity(), world_.queue.now() + duration);
    for (auto& [identity, node] : nodes_) {
      node.agent->links_are_held_until(world_.queue.now() + duration);
    }
  }
  if (from == 1) return;
  agent.cut_off_until(world_.queue.now() + duration);
  nodes_.at(agent.identity()).connection->lose(duration);
}

// Hangs for a while. The driver finds a long silence and ends the agent; without a driver the next
// one does.
void Simulation::hang(SimulatedAgent& agent) {
  agent.hang();
  const Identity identity = agent.identity();
  const bool for_long = world_.chance(300'000);
  const auto leads = drivers_.find(serial_);
  const bool is_led = leads != drivers_.end() && !leads->second.is_leaving;
  // The driver of agents that joined ends the process of its own alone.
  const bool is_seen = !world_.scenario.joined || world_.scenario.is_own(agent.node());
  if (for_long && is_led && is_seen) return;
  const Time duration = for_long ? DriverMachine::kAgentSilence : world_.about(milliseconds(200));
  world_.queue.after(duration, life_, [this, identity, for_long] {
    const auto found = nodes_.find(identity);
    if (found == nodes_.end()) return;
    for_long ? found->second.agent->die() : found->second.agent->go_on();
  });
}

Verdict simulate(const RunOptions& options) {
  Scenario scenario = draw_scenario(options.seed, options.limits);
  return Simulation(std::move(scenario), options.traced).run();
}

}  // namespace tune::simulator
