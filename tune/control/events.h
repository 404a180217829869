// What the controller is told (Event) and what it wants done (Effects). Events of one turn of the
// driver's loop are one journal entry (Turn); effects follow from them and are never stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/messages.h"
#include "core/trial.h"

namespace tune {

// A driver took over: every open attempt is lost, its trial goes on from its last checkpoint.
struct DriverStarted {
  std::uint64_t epoch = 0;
  bool retry_errored = false;
  // What a resume may change.
  std::int64_t num_samples = 1;
  std::uint32_t max_failures = 0;
  std::uint32_t max_concurrent_trials = 0;
  Duration time_budget{};
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.epoch, s.retry_errored, s.num_samples, s.max_failures, s.max_concurrent_trials,
      s.time_budget);
  }
};
struct FromAgent {
  AgentNumber agent;
  AgentEvent event;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.agent, s.event); }
};
struct AgentLost {
  AgentNumber agent;
  std::string cause;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.agent, s.cause); }
};
// `now` has passed Controller::next_deadline().
struct DeadlineReached {
  template <class Self, class F>
  static void fields(Self&, F& f) { f(); }
};
// The user or the environment wants the experiment to end here, resumable.
struct InterruptRequested {
  std::int32_t signal = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.signal); }
};

using Event =
    std::variant<DriverStarted, FromAgent, AgentLost, DeadlineReached, InterruptRequested>;

struct Turn {
  ExperimentTime now{};
  WallTime wall{};
  std::vector<Event> events;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.now, s.wall, s.events); }
};

// ---- Effects ------------------------------------------------------------------------------------

// Records are what loggers and reporters are told, in order. References into the controller and the
// event hold until the next event is handled.
struct TrialAdded {
  const Trial& trial;
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
};
struct AttemptBegan {  // each of its ranks has a process: trial.placement and location say where
  const Trial& trial;
  const std::string& node;  // its hostname
  std::uint64_t restored;   // the iteration of the checkpoint it begins with; 0: none
};
// Before the trial's status changes by it; trial.placement still says where. An attempt whose
// processes never began ends as well.
struct AttemptOver {
  const Trial& trial;
  const AttemptEnded& ended;
};
// The scheduler stops or pauses the trial after this iteration, for trial.reason. Once a verdict,
// however often a step is done again.
struct VerdictGiven {
  const Trial& trial;
  std::uint64_t iteration;
  StopKind kind;
};
// A node, or one GPU of it, on which trials fail at once gets no trial for a while.
struct PlaceSetAside {
  const std::string& place;  // "GPU 1 of node-3", "node-3"
};
struct PlaceTakenBack {
  const std::string& place;
};
struct ExperimentOver {
  const char* how;         // "finished", "interrupted" or "failed"
  const std::string& why;  // of a failure
};
using Record = std::variant<TrialAdded, ResultRecorded, ResultsCut, TrialChanged, AttemptFailed,
                            Notice, NodeJoined, NodeLeft, DriverBegan, AttemptBegan, AttemptOver,
                            VerdictGiven, PlaceSetAside, PlaceTakenBack, ExperimentOver>;

struct RemoveCheckpoint {
  TrialNumber trial;
  std::uint64_t iteration;
};

struct Effects {
  std::vector<std::pair<AgentNumber, Command>> commands;
  std::vector<RemoveCheckpoint> removals;
};

}  // namespace tune
