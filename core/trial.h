// Trial: one configuration's life, as the controller keeps it, and its legal transitions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/apart.h"
#include "core/clock.h"
#include "core/contract_values.h"
#include "core/ids.h"
#include "core/wire.h"

namespace tune {

enum class TrialStatus : std::uint8_t {
  kPending,     // waits for resources
  kRunning,     // launched, until every process is reaped and the last checkpoint is stored
  kPaused,      // saved, without resources
  kTerminated,  // over: completed or stopped
  kError,       // over: failed more often than max_failures allows
  kLast = kError,
};
const char* status_name(TrialStatus status);  // "PENDING", ...
std::optional<TrialStatus> status_from_name(std::string_view name);
bool is_over(TrialStatus status);
// PENDING -> RUNNING, PAUSED, TERMINATED; RUNNING -> any other; PAUSED -> PENDING, RUNNING,
// TERMINATED; ERROR and TERMINATED -> PENDING (tried again).
bool transition_is_legal(TrialStatus from, TrialStatus to);

struct CheckpointRecord {
  std::uint64_t iteration = 0;
  Duration time_total{};
  std::optional<double> timesteps_total;
  std::optional<double> metric;  // of the report at that iteration, when it had one
  AttemptNumber attempt;  // in its name (core/checkpoint_name.h); 0: of a build that named none
  // Another trial's checkpoint holds the state; the numbers above are this trial's own. Only ever
  // the newest record of a trial.
  std::optional<CheckpointOrigin> origin = {};
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.iteration, s.time_total, s.timesteps_total, s.metric);
    f.added(s.attempt, s.origin);
  }
};

// A checkpoint that stands on its node, and is on its way to the experiment's folder.
struct ExpectedCheckpoint {
  std::uint64_t iteration = 0;
  AttemptNumber attempt;
  std::optional<Reported> result;  // of that iteration
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.iteration, s.attempt, s.result);
  }
};

// One of the nodes that a group over several has ranks on, but the first.
struct PlacementPart {
  AgentNumber agent;
  std::vector<std::uint32_t> gpus;
  std::uint32_t node = 1;  // of the group's nodes, counted from 0
  bool is_free = false;    // it has its place no more, and carries its checkpoint away
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.agent, s.gpus, s.node);
    f.added(s.is_free);
  }
};

// Where an attempt runs: a node and, of its GPUs, one index for each whole GPU or shared one, rank
// by rank (a rank with a share names its one GPU; ranks may name the same). A group that is on
// several nodes has as many ranks on each of them, in order. It holds a reservation on each until
// the ranks there are gone.
struct Placement {
  AgentNumber agent;  // of the node of rank 0, which leads
  std::vector<std::uint32_t> gpus;
  std::uint32_t nodes = 1;
  std::vector<PlacementPart> others = {};  // that have not ended there
  bool lead_has_ended = false;
  bool lead_is_free = false;  // as PlacementPart::is_free
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.agent, s.gpus);
    f.added(s.nodes, s.others, s.lead_has_ended, s.lead_is_free);
  }
  PlacementPart lead() const { return {agent, gpus, 0, lead_is_free}; }
};

// The nodes on which it has not ended, the lead's first.
std::vector<AgentNumber> agents_of(const Placement& placement);

// A user's order for a trial that is not carried out yet, or that holds on.
enum class Wish : std::uint8_t {
  kNone,
  kPause,  // to pause, and to stay PAUSED
  kStop,
  kLast = kStop,
};

// The last failure, kept to be shown.
struct Failure {
  AttemptNumber attempt;
  Outcome outcome = Outcome::kException;
  std::uint32_t rank = 0;
  std::int32_t code = 0;
  std::string cause;
  std::string stderr_tail;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.attempt, s.outcome, s.rank, s.code, s.cause, s.stderr_tail);
  }
};

struct Trial {
  TrialNumber number;
  TrialStatus status = TrialStatus::kPending;
  Packed config;
  AttemptNumber attempt;             // the newest; 0 before the first launch
  std::uint32_t failures = 0;        // counted by max_failures
  std::optional<Placement> placement;  // while RUNNING
  std::string location;              // "ip:pid" of the newest attempt, empty before it started
  Milestone until;                   // how far it may run unasked
  std::uint64_t judged = 0;          // the scheduler has seen iterations up to here,
  std::uint64_t searched = 0;        // the searcher up to here: also what ended an attempt
  std::optional<StopKind> verdict;   // given at iteration `judged`, not yet carried out
  std::string reason;                // of the last stop or pause, fit to show
  bool paused_by_scheduler = false;
  std::optional<Reported> last;      // the newest result that was not superseded
  std::optional<double> metric;      // the newest reported: `last` may have none
  std::optional<Reported> at_checkpoint;  // the result at the newest checkpoint's iteration
  std::vector<CheckpointRecord> checkpoints;  // on disk, oldest first: the newest restarts it
  std::optional<Apart<Failure>> failure;
  std::uint32_t replacements = 0;  // how often the scheduler gave it another configuration
  Wish wish = Wish::kNone;
  bool is_added = false;     // by a user: no searcher has proposed it
  bool was_stopped = false;  // TERMINATED by a decision, before its own end
  bool saves_first = false;  // asked of it with its last verdict, before it goes on
  std::vector<ExpectedCheckpoint> expected;  // of its newest attempt, oldest first
  // While it is paused: the node that may have kept its newest checkpoint.
  std::optional<AgentNumber> home;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.status, s.config, s.attempt, s.failures, s.placement, s.location, s.until,
      s.judged, s.searched, s.verdict, s.reason, s.paused_by_scheduler, s.last, s.metric,
      s.at_checkpoint, s.checkpoints, s.failure);
    f.added(s.replacements, s.wish, s.is_added, s.was_stopped, s.saves_first, s.expected, s.home);
  }
};

}  // namespace tune
