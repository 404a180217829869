// The controller's answer to an event (core/journal_format.h): the effects it wants (Effects) and
// the records for loggers and reporters (Record). Both follow from events and are never stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/agent_contract.h"
#include "core/checkpoint_name.h"
#include "core/ids.h"
#include "core/journal_format.h"
#include "core/trial.h"
#include "schedulers/trial_scheduler.h"

namespace tune {

struct Proposal;  // tune/search/proposal.h

// ---- Effects ------------------------------------------------------------------------------------

// Records tell loggers and reporters what happened, in order. References into the controller and
// the event hold until the next event is handled.
struct TrialAdded {
  const Trial& trial;
};
// After TrialAdded, by a searcher that has something to tell of it.
struct TrialProposed {
  const Trial& trial;
  const Proposal& proposal;
};
struct ResultRecorded {
  const Trial& trial;
  const Reported& report;
  bool done;  // the trial ends with this result
};
// The trial goes on from this iteration: its later results are void.
struct ResultsCut {
  const Trial& trial;
  std::uint64_t iteration;
};
struct TrialChanged {  // status, location or checkpoints
  const Trial& trial;
  std::optional<TrialStatus> former = {};  // what its status was, when it is another now
};
struct AttemptFailed {
  const Trial& trial;  // trial.failure is set
  bool retried;
};
struct Notice {  // for the user
  std::string text;
};
struct DriverNotice {  // of the driver, not of the controller: the user was told already
  const std::string& text;
};
struct NodeJoined {  // before any trial runs there; a later one of that number replaces it
  AgentNumber agent;
  const AgentHello& hello;
};
struct NodeLeft {  // after the ends of its attempts
  AgentNumber agent;
  const AgentHello& hello;
  const std::string& cause;
};
struct DriverBegan {  // of this epoch; what an earlier one had running is lost
  std::uint64_t epoch;
  bool keeps = false;  // but what runs on machines that may come back: what is lost there is told
};
struct NodeReturned {  // a machine that an earlier driver had, with so many trials that go on
  AgentNumber agent;
  const AgentHello& hello;
  std::size_t trials;
};
struct AttemptBegan {  // each of its ranks has a process: trial.placement and location say where
  const Trial& trial;
  const std::string& node;  // its hostname
  std::uint64_t restored;   // the iteration of the checkpoint it begins with; 0: none
};
// Told before the trial's status changes by it; trial.placement still has the place. An attempt
// whose processes never began ends as well.
struct AttemptOver {
  const Trial& trial;
  const AttemptEnded& ended;
};
// The trial came to a rung with this iteration; before VerdictGiven. Told once, however often the
// step is done again.
struct RungReached {
  const Trial& trial;
  std::uint64_t iteration;
  const RungPlace& place;
  Decision::Kind decision;
};
// The scheduler stops or pauses the trial after this iteration, for trial.reason. Told once for
// each verdict, however often a step is done again.
struct VerdictGiven {
  const Trial& trial;
  std::uint64_t iteration;
  StopKind kind;
};
// The scheduler lets the trial go on after this iteration with trial.config in place of `former`,
// and from another trial's checkpoint; from its own when `origin` names the trial itself.
struct TrialReplaced {
  const Trial& trial;
  TrialNumber donor;  // that the scheduler named; its checkpoint may be another trial's in turn
  const CheckpointOrigin& origin;
  std::uint64_t iteration;
  const Packed& former;
  const std::string& reason;
};
// A node, or one GPU of it, on which trials fail at once gets no trial for a while.
struct PlaceSetAside {
  const std::string& place;  // "GPU 1 of node-3", "node-3"
};
struct PlaceTakenBack {
  const std::string& place;
};
// A user's order is carried out: told before what follows from it, but for TrialAdded.
struct UserActed {
  const UserOrdered& order;
  const Trial* about;  // null: the sweep
};
// Of what the pool has asked its engine for: asked, queued, running, ended. And of the pool itself.
struct AllocationTold {
  const AllocationChanged& change;
};
struct PoolTold {
  const PoolOrdered& order;
};
struct ExperimentOver {
  const char* how;         // "finished", "interrupted" or "failed"
  const std::string& why;  // of a failure
};
using Record =
    std::variant<TrialAdded, ResultRecorded, ResultsCut, TrialChanged, AttemptFailed, Notice,
                 NodeJoined, NodeLeft, DriverBegan, AttemptBegan, AttemptOver, VerdictGiven,
                 PlaceSetAside, PlaceTakenBack, ExperimentOver, DriverNotice, TrialProposed,
                 TrialReplaced, RungReached, UserActed, NodeReturned, AllocationTold, PoolTold>;

struct RemoveCheckpoint {
  TrialNumber trial;
  CheckpointId checkpoint;
};

// The answer to a user's order, for the one who gave it.
struct OrderAnswer {
  std::uint64_t ticket = 0;
  bool is_done = false;  // else the text says what prevents it
  std::string text;
};

struct Effects {
  std::vector<std::pair<AgentNumber, Command>> commands;
  std::vector<RemoveCheckpoint> removals;
  // Trials with a lost attempt, each with the newest such attempt. It, or one before it, may have
  // given a checkpoint its name without reporting it; checkpoints without a record are removed.
  std::map<TrialNumber, AttemptNumber> unsettled;
  std::vector<OrderAnswer> answers;

  void settle(TrialNumber trial, AttemptNumber lost) {
    AttemptNumber& newest = unsettled.try_emplace(trial, lost).first->second;
    newest = std::max(newest, lost);
  }
};

}  // namespace tune
