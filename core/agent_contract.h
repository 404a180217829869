// The agent contract: the messages between the driver and an agent (one per node), carried by
// core/link.h. Version kAgentContract: both ends must have the same, and AgentHello tells it.
//
// An agent's first message is AgentHello; the driver answers SetupExperiment. When the agent's
// zygote has loaded the trainable's library, the agent says ZygoteReady, and launches may follow.
// Of an attempt the agent says AttemptStarted, then what its ranks report and save, then
// AttemptEnded; before that PlaceFree, when the ranks are gone and a checkpoint is still on its
// way.
//
// An agent that has joined by a token (core/join_token.h) was started without knowing the
// experiment: it greets the driver first, and starts its zygote with what SetupExperiment says.
// It outlives its driver. The driver's own agent, where it is to outlive its driver, joins as well,
// with a zygote that it has already. To each driver that it hears for the first time it says
// AgentHello, after all that it has told and that no driver has acknowledged; that hello names what
// runs. The answer, SetupExperiment, names the attempts to keep. Verdicts that a driver before may
// have given and not sent follow.
//
// A group over several nodes is launched on the first of them, which leads. When that agent listens
// for the others (GroupMeets), they get a Launch of their own and link to it. The lead alone speaks
// for the attempt; each of the others says AttemptEnded when the ranks on its node are gone.
// core/agent/group_words.h has what agents of a group say to each other.
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

#include "core/apart.h"
#include "core/clock.h"
#include "core/contract_values.h"
#include "core/ids.h"
#include "core/resources.h"
#include "core/wire.h"

namespace tune {

// Version 3: one version for all three contracts. Version 4: names of checkpoints without the
// attempt. Version 5: no trial went on from another one's checkpoint. Version 6: no node was
// drained. Version 7: no agent outlived its driver. Version 8: every group was on one node.
// Version 9: checkpoints were in folders alone. Version 10: groups over nodes shared a folder.
// Version 11: a node that does not lead told no output of a rank that failed, and none kept what it
// had stored. Version 12: an attempt had its place until its last checkpoint was stored.
inline constexpr std::uint32_t kAgentContract = 13;
inline constexpr std::uint32_t kKeepsCheckpoints = 12;  // from that version on

// ---- Commands: driver -> agent ------------------------------------------------------------------

// Where checkpoints are kept that are in no folder: an object store (core/object_folder.h).
struct ObjectPlace {
  std::string address;   // "s3://bucket/prefix/name-0123456789abcdef"; empty: in the folder
  std::string endpoint;  // and region, for agents whose own settings name none
  std::string region;
  bool is_given() const { return !address.empty(); }
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.address, s.endpoint, s.region);
  }
};

// Of tune's own programs each machine uses its own: what a zygote's argv begins with.
enum class ZygoteProgram : std::uint8_t {
  kAsGiven,     // a user's program, at the same path everywhere
  kTuneWorker,  // core/agent/worker_command.h
  kPython,      // core/agent/python_command.h
  kLast = kPython
};

// For an agent that has joined: what the driver's own agent was started with.
struct JoinedSetup {
  std::string plugin;                       // empty: worker_command
  std::vector<std::string> worker_command;  // argv of the zygote of other trainables
  std::map<std::string, std::string> worker_environment;
  std::string working_directory;  // the driver's
  // A file of the experiment's folder with this content proves that the agent sees that folder.
  std::string proof_file;
  std::string proof;
  std::int64_t trial_memory_bytes = 0;  // the limit on a trial's memory; 0: none
  Duration patience{};                  // how long trials are kept without a driver
  // A file of that folder with the token by which to find the experiment's next driver. It is gone
  // when a driver has ended in order, so that there is none to wait for.
  std::string join_file;
  // Where the driver's host takes checkpoints and output of agents that do not see that folder
  // (core/relay_contract.h). 0: it does not.
  std::uint32_t relay_port = 0;
  // Of every agent, the driver's own as well: the secret key by which agents of a group know each
  // other, and where the driver listens, so that an agent beside it knows how others reach it.
  std::string group_key;
  std::vector<std::string> driver_addresses;
  // The plugin's fingerprint, and the folder with a copy of it below the experiment's, for machines
  // that have another file at its path, or none. Empty: there is no copy.
  std::string plugin_fingerprint;
  std::string plugin_copy;  // "plugin/0123456789abcdef"
  ZygoteProgram zygote_program = ZygoteProgram::kAsGiven;  // of worker_command
  // The experiments of a program's calls of tune::run before this one, which return their results
  // wherever the program is executed.
  std::vector<std::string> earlier;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.plugin, s.worker_command, s.worker_environment, s.working_directory, s.proof_file, s.proof,
      s.trial_memory_bytes, s.patience);
    f.added(s.join_file, s.relay_port, s.group_key, s.driver_addresses, s.plugin_fingerprint,
            s.plugin_copy, s.zygote_program, s.earlier);
  }
};

// The answer to a hello, before anything else: the settings that all trials share.
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
  JoinedSetup joined;
  ObjectPlace objects;
  Duration save_grace = std::chrono::seconds(30);  // to save when a node leaves; 0: any time
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.experiment_id, s.experiment_directory, s.trainable, s.stop, s.checkpoint,
      s.max_trial_time, s.hang_timeout, s.group_timeout, s.gpu_visibility, s.environment, s.keep);
    f.added(s.alone_timeout);
    f.added(s.joined);
    f.added(s.objects);
    f.added(s.save_grace);
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
  std::int64_t gpu_units = 0;  // of the whole trial; 0: none, or not said
  // Of a group over several nodes, with equally many ranks on each: their hostnames, which of them
  // this one is, and the address at which the first, which leads, awaits it. `gpus` are those of this
  // node, `ranks` and `cpu_units` of the whole trial. Empty: one node.
  std::vector<std::string> hosts = {};
  std::uint32_t node = 0;
  std::string lead = {};
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.config, s.seed, s.ranks, s.cpu_units, s.gpus, s.restore_iteration,
      s.restore_attempt, s.time_total, s.timesteps_total, s.until, s.origin);
    f.added(s.gpu_units, s.hosts, s.node, s.lead);
  }

  std::uint32_t nodes() const {
    return hosts.empty() ? 1 : static_cast<std::uint32_t>(hosts.size());
  }
  std::uint32_t local_ranks() const { return ranks / nodes(); }
  std::uint32_t first_rank() const { return node * local_ranks(); }
};

// Answered by AttemptEnded, also by an agent that does not have the attempt.
struct KillAttempt {
  TrialNumber trial;
  AttemptNumber attempt;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.trial, s.attempt); }
};

// The agent ends its attempts, its zygote and itself. An agent that has joined says `cause` to its
// user, if there is one, and joins anew when it may. `at_once`: its last words are not waited for.
struct Shutdown {
  std::string cause;
  bool joins_again = false;
  bool at_once = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f();
    f.added(s.cause, s.joins_again, s.at_once);
  }
};

// The node is to leave: it starts no more attempts, those that run save and end, and it ends.
struct Drain {
  std::string cause;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.cause);
  }
};

// The token by which an agent that has joined connects from now on.
struct NewToken {
  std::string token;  // core/join_token.h
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.token);
  }
};

using Command = std::variant<Apart<SetupExperiment>, Launch, Continue, StopAttempt, KillAttempt,
                             Shutdown, Drain, NewToken>;

// ---- Events: agent -> driver --------------------------------------------------------------------

// An attempt whose end was not told yet.
struct LiveAttempt {
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint64_t iteration = 0;  // that it has reported; 0: none
  bool waits = false;           // for the verdict on that
  bool has_order = false;       // to stop or pause
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt);
    f.added(s.iteration, s.waits, s.has_order);
  }
};

struct GpuInfo {
  std::string device;
  std::string name;
  std::int64_t memory_bytes = 0;
  std::string uuid = {};  // or MIG id; empty: a logical one
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.device, s.name, s.memory_bytes);
    f.added(s.uuid);
  }
};

// The first message of an agent, and of one that has joined to each further driver.
struct AgentHello {
  std::uint32_t contract = kAgentContract;
  std::string hostname;
  std::string ip;
  std::uint32_t pid = 0;
  std::int64_t cpu_units = 0;
  std::int64_t memory_bytes = 0;
  std::vector<GpuInfo> gpus;
  std::vector<LiveAttempt> live;
  bool joined = false;     // by a token; else it is the driver's own
  std::string machine;     // not used any more: it keeps the place of the fields after it
  Duration lasts{};        // from now until its allocation ends; 0: without an end
  std::string allocation;  // the name of the one that an engine has started it in; empty: none
  // Its name in its connection, which the driver fills in: it is the same to the next driver.
  std::string identity = {};
  std::uint64_t epoch = 0;  // of the driver that is greeted; 0: the first, not heard yet
  std::string experiment = {};  // the id of the one that it takes part in; empty: in none yet
  bool own = false;             // one that has joined, and yet is the own agent of a driver
  // A GPU of it that fails is remembered by its UUID. That of an older build was by its number,
  // which several may have: under a batch system each job counts from 0.
  bool gpus_by_uuid = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.contract, s.hostname, s.ip, s.pid, s.cpu_units, s.memory_bytes, s.gpus, s.live);
    f.added(s.joined, s.machine, s.lasts, s.allocation, s.identity, s.epoch, s.experiment, s.own,
            s.gpus_by_uuid);
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

// A checkpoint is complete and flushed in its final folder. Where the agent does not see the
// experiment's folder, it first says that the checkpoint is complete in a folder of its own
// (kOnNode), as the reports that follow must not wait until it has arrived; then that it is stored
// in the experiment's folder, or that it will not be (kGivenUp). Of a checkpoint that is written
// beside the training it says kOnNode when the worker holds a copy. Only a stored one is of use to
// another node, and takes the place of older ones.
struct CheckpointSaved {
  enum class Storing : std::uint8_t { kStored, kOnNode, kGivenUp, kLast = kGivenUp };
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint64_t iteration = 0;
  Duration time_total{};
  std::optional<double> timesteps_total;
  bool name_has_attempt = true;  // false where the field is missing: an older build
  Storing storing = Storing::kStored;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.iteration, s.time_total, s.timesteps_total);
    f.added_or(s.name_has_attempt, false);
    f.added(s.storing);
  }
};

// Every process of the attempt on this node is reaped, and its last checkpoint is still carried to
// where it is kept: its place may have another trial meanwhile. AttemptEnded follows.
struct PlaceFree {
  TrialNumber trial;
  AttemptNumber attempt;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt);
  }
};

// Every process of the attempt is reaped, as far as this node has to do with it: the one that leads a
// group over several nodes tells how it ended, another that its own ranks are gone.
struct AttemptEnded {
  TrialNumber trial;
  AttemptNumber attempt;
  Outcome outcome = Outcome::kCompleted;
  std::uint32_t rank = 0;      // the rank with the first cause
  std::int32_t code = 0;       // exit code or signal number
  std::string cause;           // "setup: cannot open data.bin", "killed by signal 11 (SIGSEGV)"
  std::string stderr_tail;     // last lines of that rank's stderr, at most kStderrTailBytes
  bool is_of_node = false;     // kLost: a node is to blame, whatever the trial was told
  std::uint32_t unlinked = 0;  // the node of its group that never reached the first; 0: none
  bool is_kept = false;        // where checkpoints are carried, that node has the newest as well
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.outcome, s.rank, s.code, s.cause, s.stderr_tail);
    f.added(s.is_of_node, s.unlinked, s.is_kept);
  }
};
inline constexpr std::size_t kStderrTailBytes = 16u << 10;
inline constexpr std::size_t kStderrTailLines = 20;

// This node starts no more attempts; those that run go on. `gone`: every process of it has ended,
// and it says nothing more.
struct NodeOut {
  std::string cause;
  bool gone = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.cause);
    f.added(s.gone);
  }
};

// The node that leads a group listens for the others: at these addresses, one for each of them in
// order.
struct GroupMeets {
  TrialNumber trial;
  AttemptNumber attempt;
  std::vector<std::string> addresses;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.addresses);
  }
};

using AgentEvent =
    std::variant<Apart<AgentHello>, ZygoteReady, AttemptStarted, Reported, CheckpointSaved,
                 AttemptEnded, Warning, NodeOut, GroupMeets, PlaceFree>;

}  // namespace tune
