// The agent contract: the messages between the driver and an agent (one per node), carried by
// core/link.h. Version kAgentContract: both ends must have the same, and AgentHello tells it.
//
// An agent's first message is AgentHello; the driver answers SetupExperiment. When the agent's
// zygote has loaded the trainable's library, the agent says ZygoteReady, and launches may follow.
// Of an attempt the agent says AttemptStarted, then what its ranks report and save, then
// AttemptEnded.
//
// Events are journaled as they came, so the rules of core/contract_values.h hold for them as well.
// Commands are never stored.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/contract_values.h"
#include "core/ids.h"
#include "core/resources.h"
#include "core/wire.h"

namespace tune {

// Version 3: one version for all three contracts. Version 4: names of checkpoints without the
// attempt. Version 5: no trial went on from another one's checkpoint.
inline constexpr std::uint32_t kAgentContract = 6;

// ---- Commands: driver -> agent ------------------------------------------------------------------

// Sent once to each agent, before anything else: the settings that all trials share.
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
  Duration alone_timeout{};  // the same for a rank that saves or works alone; 0: any time
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.experiment_id, s.experiment_directory, s.trainable, s.stop, s.checkpoint,
      s.max_trial_time, s.hang_timeout, s.group_timeout, s.gpu_visibility, s.environment, s.keep);
    f.added(s.alone_timeout);
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
  std::uint64_t restore_iteration = 0;       // load checkpoint_name(this, the next); 0: none
  AttemptNumber restore_attempt;
  Duration time_total{};                     // of earlier attempts, up to that iteration
  double timesteps_total = 0;
  Milestone until;
  // Load this checkpoint instead, and count on from restore_iteration, which is not 0.
  std::optional<CheckpointOrigin> origin = {};
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.config, s.seed, s.ranks, s.cpu_units, s.gpus, s.restore_iteration,
      s.restore_attempt, s.time_total, s.timesteps_total, s.until, s.origin);
  }
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

// ---- Events: agent -> driver --------------------------------------------------------------------

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

// The first message of an agent, sent again after each reconnect.
struct AgentHello {
  std::uint32_t contract = kAgentContract;
  std::string hostname;
  std::string ip;
  std::uint32_t pid = 0;
  std::int64_t cpu_units = 0;
  std::int64_t memory_bytes = 0;
  std::vector<GpuInfo> gpus;
  std::vector<LiveAttempt> live;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.contract, s.hostname, s.ip, s.pid, s.cpu_units, s.memory_bytes, s.gpus, s.live);
  }
};

NodeResources resources_of(const AgentHello& hello);

// The process of rank 0 exists (all ranks do).
struct AttemptStarted {
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint32_t pid = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.trial, s.attempt, s.pid); }
};

// A checkpoint is complete and flushed in its final folder.
struct CheckpointSaved {
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint64_t iteration = 0;
  Duration time_total{};
  std::optional<double> timesteps_total;
  bool name_has_attempt = true;  // false where the field is missing: an older build
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.iteration, s.time_total, s.timesteps_total);
    f.added_or(s.name_has_attempt, false);
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

}  // namespace tune
