// What the processes say to each other: worker <-> agent <-> driver. Plain structs, see core/wire.h.
//
// Events travel towards the driver and are journaled as they came; commands travel towards the
// worker. Times: `now` is experiment time, durations are nanoseconds. Iterations count from 1.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/resources.h"
#include "core/value.h"
#include "core/wire.h"

namespace tune {

// ---- Shared pieces ----------------------------------------------------------------------------

// How far a worker may go unasked: it waits at the first report whose time attribute (a key path of
// the result; training_iteration and time_total_s are always there) is >= value. A report without
// the attribute never waits. An empty attribute: never waits.
struct Milestone {
  std::string attribute;
  double value = 0;
  friend bool operator==(const Milestone&, const Milestone&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.attribute, s.value); }
};

// A trial stops at the first result in which the value at `path` is >= bound (or <= bound).
struct StopRule {
  std::string path;
  double bound = 0;
  bool at_most = false;
  friend bool operator==(const StopRule&, const StopRule&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.path, s.bound, s.at_most); }
};

struct CheckpointPolicy {
  std::uint32_t frequency = 0;  // every so many iterations; 0: never
  bool at_end = true;           // when the attempt ends without an error
  std::uint32_t keep = 1;       // newest so many of a trial, and the one with the best metric
  friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.frequency, s.at_end, s.keep); }
};

enum class Outcome : std::uint8_t {
  kCompleted,  // by a stop rule, `done`, max_trial_time, or the function returned
  kStopped,    // a stop verdict was carried out
  kPaused,     // saved after a pause verdict
  kException,  // setup, step, save, load or the function threw
  kSignal,     // a rank was ended by a signal
  kExit,       // a rank exited on its own
  kHung,       // no report within hang_timeout, or group_timeout passed; the agent killed it
  kLost,       // its agent, node or driver was lost; not counted as a failure
  kLast = kLost,
};
bool is_failure(Outcome outcome);  // counted by max_failures
const char* outcome_name(Outcome outcome);

enum class StopKind : std::uint8_t {
  kStop,   // the trial is over: save if at_end, end as kStopped
  kPause,  // save always, end as kPaused; what cannot save ends as kLost
  kLast = kPause,
};

// ---- Commands: driver -> agent (-> worker) ----------------------------------------------------

// Once an agent, before anything else: what all trials of the experiment share.
struct SetupExperiment {
  std::string experiment_id;
  std::string experiment_directory;  // absolute, on this node
  std::string trainable;
  std::vector<StopRule> stop;
  CheckpointPolicy checkpoint;
  Duration max_trial_time{};  // 0: none
  Duration hang_timeout{};    // 0: none
  Duration group_timeout{};   // how long ranks wait for each other, see RunOptions; 0: any time
  GpuVisibility gpu_visibility = GpuVisibility::kTrial;
  std::map<std::string, std::string> environment;
  std::vector<std::uint64_t> keep;  // attempt_key()s of live attempts to keep; all others end now
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.experiment_id, s.experiment_directory, s.trainable, s.stop, s.checkpoint,
      s.max_trial_time, s.hang_timeout, s.group_timeout, s.gpu_visibility, s.environment, s.keep);
  }
};

struct Launch {
  TrialNumber trial;
  AttemptNumber attempt;
  Packed config;
  std::uint64_t seed = 0;
  std::uint32_t ranks = 1;
  std::int64_t cpu_units = kUnit;            // of the whole trial
  std::vector<std::uint32_t> gpus;           // indices into the node's GPUs, rank by rank
  std::uint64_t restore_iteration = 0;       // load checkpoint_<this>; 0: start afresh
  Duration time_total{};                     // of earlier attempts, up to that iteration
  double timesteps_total = 0;
  Milestone until;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.config, s.seed, s.ranks, s.cpu_units, s.gpus, s.restore_iteration,
      s.time_total, s.timesteps_total, s.until);
  }
};

// The verdict on a waiting report: train on, up to the milestone.
struct Continue {
  TrialNumber trial;
  AttemptNumber attempt;
  Milestone until;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.trial, s.attempt, s.until); }
};

// One number for an attempt of a trial.
inline std::uint64_t attempt_key(TrialNumber trial, AttemptNumber attempt) {
  return std::uint64_t{trial.value} << 32 | attempt.value;
}

// Ends the attempt at its next step boundary (at once when it waits). The agent kills it (SIGTERM,
// then SIGKILL) when it has not ended `grace` later; 0: no limit.
struct StopAttempt {
  TrialNumber trial;
  AttemptNumber attempt;
  StopKind kind = StopKind::kStop;
  Duration grace{};
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.trial, s.attempt, s.kind, s.grace); }
};

struct KillAttempt {
  TrialNumber trial;
  AttemptNumber attempt;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.trial, s.attempt); }
};

// All attempts are over: the agent ends its zygote and itself.
struct Shutdown {
  template <class Self, class F>
  static void fields(Self&, F& f) { f(); }
};

using Command = std::variant<SetupExperiment, Launch, Continue, StopAttempt, KillAttempt, Shutdown>;

// ---- Events: agent -> driver ------------------------------------------------------------------

struct LiveAttempt {
  TrialNumber trial;
  AttemptNumber attempt;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.trial, s.attempt); }
};

struct GpuInfo {
  std::string device;
  std::string name;
  std::int64_t memory_bytes = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.device, s.name, s.memory_bytes); }
};

// First word of an agent, and again after each reconnect.
struct AgentHello {
  std::uint32_t protocol = kProtocolVersion;
  std::string hostname;
  std::string ip;
  std::uint32_t pid = 0;
  std::int64_t cpu_units = 0;
  std::int64_t memory_bytes = 0;
  std::vector<GpuInfo> gpus;
  std::vector<LiveAttempt> live;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.protocol, s.hostname, s.ip, s.pid, s.cpu_units, s.memory_bytes, s.gpus, s.live);
  }
};

NodeResources resources_of(const AgentHello& hello);

struct TrainableInfo {
  std::string name;
  bool can_save = false;
  bool is_function = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.name, s.can_save, s.is_function); }
};

// The zygote has loaded the trainable's library, or could not (then `error` says why).
struct ZygoteReady {
  std::string error;
  std::vector<TrainableInfo> trainables;
  std::string note;  // shown once as a warning when not empty
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.error, s.trainables, s.note); }
};

// The process of rank 0 exists (all ranks do).
struct AttemptStarted {
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint32_t pid = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.trial, s.attempt, s.pid); }
};

// One result of rank 0, as the user reported it.
struct Reported {
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint64_t iteration = 0;
  Duration time_this_iter{};
  Duration time_total{};           // of the trial, earlier attempts included
  Duration time_since_restore{};
  std::uint64_t iterations_since_restore = 0;
  std::optional<double> timesteps_total;
  bool waiting = false;            // the worker waits for a verdict
  bool final = false;              // a stop rule or `done` ended it; no verdict is awaited
  Packed result;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.iteration, s.time_this_iter, s.time_total, s.time_since_restore,
      s.iterations_since_restore, s.timesteps_total, s.waiting, s.final, s.result);
  }
};

// A checkpoint stands whole in its final folder, flushed.
struct CheckpointSaved {
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint64_t iteration = 0;
  Duration time_total{};
  std::optional<double> timesteps_total;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.iteration, s.time_total, s.timesteps_total);
  }
};

// Every process of the attempt is reaped.
struct AttemptEnded {
  TrialNumber trial;
  AttemptNumber attempt;
  Outcome outcome = Outcome::kCompleted;
  std::uint32_t rank = 0;       // the rank with the first cause
  std::int32_t code = 0;        // exit code or signal number
  std::string cause;            // "setup: cannot open data.bin", "killed by signal 11 (SIGSEGV)"
  std::string stderr_tail;      // last lines of that rank's stderr, at most kStderrTailBytes
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.outcome, s.rank, s.code, s.cause, s.stderr_tail);
  }
};
inline constexpr std::size_t kStderrTailBytes = 16u << 10;
inline constexpr std::size_t kStderrTailLines = 20;

// Something the user should read once ("3 GPUs present but gpu is 0").
struct Warning {
  std::string text;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.text); }
};

// This node starts no more attempts; those that run go on.
struct NodeOut {
  std::string cause;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.cause);
  }
};

using AgentEvent = std::variant<AgentHello, ZygoteReady, AttemptStarted, Reported, CheckpointSaved,
                                AttemptEnded, Warning, NodeOut>;

// ---- Agent -> worker, worker -> agent (socket pair, length-prefixed frames) ---------------------

struct StartWorker {
  SetupExperiment experiment;
  Launch launch;
  std::string trial_id;
  std::string trial_directory;  // absolute
  std::string once_directory;   // where once_per_node keeps its locks
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t threads = 1;
  std::vector<std::string> gpu_devices;                // in CUDA_VISIBLE_DEVICES
  std::map<std::string, std::string> environment;      // CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS, ...
  std::uint32_t agent_pid = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.experiment, s.launch, s.trial_id, s.trial_directory, s.once_directory, s.rank,
      s.local_rank, s.threads, s.gpu_devices, s.environment, s.agent_pid);
  }
};

// What all ranks do next, decided by rank 0 alone at a step boundary. Rank 0 of a group sends it to
// the agent, which passes it on to the other ranks; a rank alone sends none but the first kStep,
// after setup, which shows that it is alive when hang_timeout is set.
enum class GroupAction : std::uint8_t {
  kStep,     // begin step `iteration`
  kSave,     // save checkpoint_<iteration>, then wait for the next word
  kEnd,      // the attempt is over
  kLast = kEnd,
};
struct GroupStep {
  std::uint64_t iteration = 0;
  GroupAction action = GroupAction::kStep;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.iteration, s.action); }
};

// To rank 0 of a group: to stay at its next step boundary, where no rank waits for another in a
// collective, or to go on. The driver is behind and takes no more results for a while.
struct HoldGroup {
  bool hold = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.hold); }
};

using WorkerCommand = std::variant<StartWorker, Continue, StopAttempt, GroupStep, HoldGroup>;

// This rank has written and flushed its part of the temporary checkpoint folder. When all ranks
// have, the agent renames the folder to its final name and tells the driver CheckpointSaved.
struct RankSaved {
  std::uint64_t iteration = 0;
  Duration time_total{};
  std::optional<double> timesteps_total;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.iteration, s.time_total, s.timesteps_total); }
};

// This rank of a group has finished its setup, its load or (rank r > 0) a step: rank 0's step ends
// with its report, a save with RankSaved.
struct PhaseDone {
  template <class Self, class F>
  static void fields(Self&, F& f) { f(); }
};

// Last word of a worker before it exits on its own.
struct WorkerEnded {
  Outcome outcome = Outcome::kCompleted;
  std::string cause;
  bool is_of_group = false;  // an exception that the end of another rank may have caused
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.outcome, s.cause, s.is_of_group); }
};

using WorkerEvent =
    std::variant<Reported, RankSaved, GroupStep, WorkerEnded, Warning, PhaseDone>;

}  // namespace tune
