// Controller: the pure heart of the driver. It is told events with the time they happened at, and
// answers with the effects it wants: commands for agents, checkpoints to remove, records for
// loggers and reporters. State is a fold over events: the same events in the same order give the
// same state and effects, under the driver, in the simulator and in replay (where commands are
// discarded).
//
// No event makes it throw: an event that does not fit (a message of an old attempt, say) changes
// nothing.
//
// It only routes. ControlState has what is known; what an event means for it stands in the parts,
// each of which uses those above it here and knows nothing of those below:
//
//   TrialSource        new trials: the searcher's proposals, and users' own configurations
//   TrialMoves         transitions of a trial, and who hears of them
//   ExperimentEnd      whether all is over; the early ends
//   Launcher           what begins next, and where
//   PlaceEvidence      what attempts show of the places on which they run
//   RunningAttempts    ends of attempts, on one node or several
//   AbandonedAttempts  those that were given up, and may still run
//   ReturningNodes     agents that outlive their driver
//   Membership         nodes that join and leave
//   Reports            results and checkpoints
//   UserOrders         orders of users
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent_contract.h"
#include "core/trial.h"
#include "tune/control/asking.h"
#include "tune/control/control_state.h"
#include "tune/control/course.h"
#include "tune/control/device_health.h"
#include "tune/control/events.h"
#include "tune/control/nodes.h"
#include "tune/control/outbox.h"
#include "tune/control/pool_book.h"
#include "tune/control/trial_book.h"
#include "tune/search/searcher.h"

namespace tune {

class Controller {
 public:
  using Sink = Outbox::Sink;
  static constexpr int kMostFree = Nodes::kMostFree;

  explicit Controller(ControllerSetup setup);
  Controller(Controller&&) noexcept;
  Controller& operator=(Controller&&) noexcept;
  ~Controller();

  // One event. Records go to `sink` while it is handled; their references hold during that call.
  Effects handle(ExperimentTime now, const Event& event, const Sink& sink);

  // When handle(DeadlineReached) is due, in experiment time.
  std::optional<ExperimentTime> next_deadline() const;

  // The question that the searcher is to answer now, beside the loop: made by searcher().question()
  // from the state in which it appears, and told as Proposed. Nothing: there is none.
  std::optional<Asking::Question> question() const;
  const Searcher& searcher() const { return state_->searcher; }
  std::int64_t num_samples() const { return state_->num_samples; }

  // The whole state, MessagePack. A controller of the same setup that restores it goes on as the
  // one that saved it would. Throws Error (kProtocol) when it is not of this version or setup.
  std::string save() const { return state_->save(); }
  void restore(std::string_view state) { state_->restore(state); }

  ExperimentTime now() const { return state_->now; }  // of the newest event
  Phase phase() const { return state_->course.phase(); }
  bool is_over() const { return state_->course.is_over(); }  // nothing more will happen by itself
  // The reason why the experiment cannot go on (kFailed): bad input such as a missing trainable. Or
  // why it cannot go on here (kInterrupted): no node is left that could start a trial. A line about
  // an option begins with its key, "trainable: ...".
  const std::string& failure() const { return state_->course.failure(); }
  const Objective& objective() const { return state_->setup.objective; }

  const std::deque<Trial>& trials() const { return state_->book.all(); }
  const TrialBook::Counts& counts() const { return state_->book.counts(); }
  std::optional<std::uint64_t> total_trials() const { return state_->searcher.total(); }
  std::optional<TrialNumber> best_trial() const { return state_->book.best(); }
  std::vector<TrialNumber> pareto() const { return state_->book.pareto(); }
  std::vector<std::string> scheduler_lines() const {
    return state_->verdicts.scheduler().status_lines();
  }
  const Placer& placer() const { return state_->nodes.placer(); }
  const Nodes& nodes() const { return state_->nodes; }
  bool has_ready_node() const { return state_->nodes.any_is_ready(); }
  const PoolBook& pool() const { return state_->pool; }
  PoolBook::Number allocation_of(const AgentHello& hello) const {
    return state_->allocation_of(hello);
  }
  const TrialBook::Numbers& running() const { return state_->book.running(); }
  // Trials that users have paused; and whether nothing runs, or could, but for them.
  const TrialBook::Numbers& held() const { return state_->book.held(); }
  bool waits_for_user() const { return state_->waits_for_user; }
  // The number of trials that would begin now if there was room for them; kNoEnd at most.
  std::uint64_t wanted() const;
  static constexpr std::uint64_t kNoEnd = 1'000'000;
  const DeviceHealth& device_health() const { return state_->health; }

 private:
  struct Parts;

  void on(const DriverStarted& event);
  void on(const FromAgent& event);
  void on(const AgentLost& event);
  void on(const DeadlineReached& event);
  void on(const InterruptRequested& event);
  void on(const Proposed& event);
  void on(const AllocationChanged& event);
  void on(const PoolOrdered& event);
  void on(const UserOrdered& event);

  void on_agent(AgentNumber agent, const AgentHello& hello);
  void on_agent(AgentNumber agent, const ZygoteReady& ready);
  void on_agent(AgentNumber agent, const AttemptStarted& started);
  void on_agent(AgentNumber agent, const Reported& report);
  void on_agent(AgentNumber agent, const CheckpointSaved& saved);
  void on_agent(AgentNumber agent, const AttemptEnded& ended);
  void on_agent(AgentNumber agent, const Warning& warning);
  void on_agent(AgentNumber agent, const NodeOut& out);
  void on_agent(AgentNumber agent, const GroupMeets& meets);
  void on_agent(AgentNumber agent, const PlaceFree& free);

  std::unique_ptr<ControlState> state_;  // where the parts find it after a move
  std::unique_ptr<Parts> parts_;
};

}  // namespace tune
