// The worker contract: what a worker and its agent say to each other, and a zygote and its agent.
// Version kWorkerContract. All that a program in another language needs to be a worker stands on
// this page.
//
// 1. Framing. A worker has one stream socket to its agent, inherited. Each message is 4 bytes of
//    length (little-endian), then that many bytes, at most kMaxFrameBytes. A zygote has a
//    SOCK_SEQPACKET socket: one message a packet, at most kMaxSpawnPacketBytes, without a length.
//
// 2. Encoding: MessagePack. A message is [kind, fields]: its place in the lists WorkerCommand,
//    WorkerEvent and ZygoteMessage below, counted from 0, and an array of its fields in the order
//    of `fields`. A SpawnRequest, of which there is one kind only, is its fields alone. Inside:
//      bool: bool. Whole numbers, ids and enumerators: int. double: float64 (an int is read too).
//      std::string: str. Duration: int, nanoseconds. std::optional: nil or the value.
//      std::vector: array. std::map: map with str keys. A struct: array of its fields.
//      Packed: bin that holds a MessagePack map with str keys (no '/' in them), values of nil,
//      bool, int up to 2^63 - 1, float, str, array and map, nested at most kMaxNesting deep.
//
// 3. Versions. The first field of StartWorker is kWorkerContract of the agent, in every version; a
//    worker that speaks another one answers WorkerEnded{kException, both versions}, whose first two
//    fields never change, and exits. A zygote says its own in ZygoteReady, a plugin in
//    tune_plugin(). Fields that were added since (`f.added`) may be missing: they have their
//    defaults then. Fields beyond those that a reader knows are skipped. A new field that may be
//    missing, or a new kind of message that is sent only to a worker that asked for it, leaves the
//    version as it is; anything else raises it.
//
// 4. Order of a rank alone.
//      agent   StartWorker, once, first.
//      worker  setup, load when restore_iteration is not 0; when hang_timeout is not 0, once:
//              GroupStep{restore_iteration + 1, kStep}. Then, step by step:
//              Reported, with iteration one above the last. `final` when a stop rule holds, the
//              result says done, or time_total has reached max_trial_time; else `waiting` when the
//              milestone's attribute is there and has reached its value.
//              RankSaved after each save: at the checkpoint policy's iterations, at the end when
//              at_end, when told to pause, and when a Continue asks for it. Where StartWorker has
//              `hears_copied`, RankCopied may come in its place; RankSaved then follows at any
//              time, before the next save and before WorkerEnded.
//      agent   Continue or StopAttempt, at any time; a worker that said `waiting` trains on only
//              when one has come. A StopAttempt is obeyed at the next step boundary.
//      worker  WorkerEnded, last; then it exits with 0, or 1 after an exception. Anything else
//              counts as a crash.
//    A save writes into <trial_directory>/<temporary_checkpoint_name(iteration, attempt)>, a folder
//    that rank 0 makes, empty, and flushes it; another rank, whose machine may have no such folder
//    yet, makes it when it is not there. The agent renames it. A load reads
//    <trial_directory>/<checkpoint_name(restore_iteration, restore_attempt)>, or restore_folder
//    when that is not empty. Both names are in core/checkpoint_name.h. A closed socket means that
//    the agent is gone: the process ends.
//
// 5. Order of a group: as above for rank 0, which alone reports and hears Continue and StopAttempt.
//    Each rank says PhaseDone when it has finished its setup and its load, rank r > 0 after each
//    step as well. Before each step, save and the end rank 0 says GroupStep, which the other ranks
//    wait for and hear from the agent; they never begin a step before it. A rank may say
//    RankAlone{true} at any time after StartWorker, and later RankAlone{false}. HoldGroup{true}
//    keeps rank 0 at its next step boundary until HoldGroup{false}. A rank may say
//    AskAlone at any time, once until it is answered; OthersAlone may then come between any two
//    commands.
//
// 6. Zygote: says ZygoteReady once it has loaded its trainables, then forks a worker for each
//    SpawnRequest and answers Spawned. It ends when the agent closes the socket.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/contract_values.h"
#include "core/ids.h"
#include "core/wire.h"

namespace tune {

// Version 3: one version for all three contracts. Version 4: names of checkpoints without the
// attempt. Version 5: no answer to AskAlone. Version 6: no trial went on from another one's
// checkpoint, and Continue never asked for a save.
inline constexpr std::uint32_t kWorkerContract = 7;

// ---- Agent -> worker ----------------------------------------------------------------------------

// The settings that all trials of the experiment share.
struct WorkerExperiment {
  std::vector<StopRule> stop;
  CheckpointPolicy checkpoint;
  Duration max_trial_time{};  // 0: none
  Duration hang_timeout{};    // 0: none
  std::map<std::string, std::string> environment;  // set before that of StartWorker
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.stop, s.checkpoint, s.max_trial_time, s.hang_timeout, s.environment);
  }
};

// The settings that all ranks of the attempt share.
struct WorkerLaunch {
  TrialNumber trial;
  AttemptNumber attempt;
  Packed config;
  std::uint64_t seed = 0;
  std::uint32_t ranks = 1;
  std::uint64_t restore_iteration = 0;  // load checkpoint_name(this, the next); 0: start afresh
  AttemptNumber restore_attempt;
  Duration time_total{};                // of earlier attempts, up to that iteration
  double timesteps_total = 0;
  Milestone until;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.config, s.seed, s.ranks, s.restore_iteration, s.restore_attempt,
      s.time_total, s.timesteps_total, s.until);
  }
};

struct StartWorker {
  std::uint32_t contract = kWorkerContract;
  WorkerExperiment experiment;
  WorkerLaunch launch;
  std::string trial_id;
  std::string trial_directory;  // absolute
  std::string once_directory;   // where once_per_node keeps its locks
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t threads = 1;
  std::vector<std::string> gpu_devices;            // in CUDA_VISIBLE_DEVICES
  std::map<std::string, std::string> environment;  // CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS, ...
  std::uint32_t agent_pid = 0;
  // Absolute: load this checkpoint, of another trial; counting goes on from restore_iteration.
  // Empty: the trial's own.
  std::string restore_folder;
  bool hears_copied = false;  // the agent knows RankCopied
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f.contract(s.contract, kWorkerContract, "the worker contract");
    f(s.experiment, s.launch, s.trial_id, s.trial_directory, s.once_directory, s.rank, s.local_rank,
      s.threads, s.gpu_devices, s.environment, s.agent_pid, s.restore_folder);
    f.added(s.hears_copied);
  }
};

// The next action of all ranks, decided by rank 0 alone at a step boundary. Rank 0 of a group sends
// it to the agent, which passes it on to the other ranks; a rank alone sends none but the first
// kStep, after setup, which shows that it is alive when hang_timeout is set.
enum class GroupAction : std::uint8_t {
  kStep,     // begin step `iteration`
  kSave,     // save the checkpoint of `iteration`, then wait for the next word
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

// The answer to AskAlone: whether a rank of the group works alone, or saves, that is not the one
// that asked.
struct OthersAlone {
  bool any = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.any);
  }
};

using WorkerCommand =
    std::variant<StartWorker, Continue, StopAttempt, GroupStep, HoldGroup, OthersAlone>;

// ---- Worker -> agent ----------------------------------------------------------------------------

// This rank has written and flushed its part of the temporary checkpoint folder. When all ranks
// have, the agent renames the folder to its final name and tells the driver CheckpointSaved.
struct RankSaved {
  std::uint64_t iteration = 0;
  Duration time_total{};
  std::optional<double> timesteps_total;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.iteration, s.time_total, s.timesteps_total); }
};

// Rank 0 holds a copy of its part of the checkpoint, which it writes beside its next steps: its
// save phase is over, and RankSaved follows. Only to an agent that hears it.
struct RankCopied {
  std::uint64_t iteration = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.iteration);
  }
};

// This rank of a group has finished its setup, its load or (rank r > 0) a step: rank 0's step ends
// with its report, a save with RankSaved or RankCopied.
struct PhaseDone {
  template <class Self, class F>
  static void fields(Self&, F& f) { f(); }
};

// This rank of a group works alone from now on, or does not any more: the others wait for it, for
// longer than for one that is only late (alone_timeout_s). Within a save it is not said.
struct RankAlone {
  bool begins = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.begins); }
};

// Is another rank of the group alone? For ranks that wait for others which they cannot hear, as
// those do that form a group. It is not a sign of life.
struct AskAlone {
  template <class Self, class F>
  static void fields(Self&, F& f) {
    f();
  }
};

// Last word of a worker before it exits on its own.
struct WorkerEnded {
  Outcome outcome = Outcome::kCompleted;
  std::string cause;
  bool is_of_group = false;  // an exception that the end of another rank may have caused
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.outcome, s.cause, s.is_of_group); }
};

using WorkerEvent = std::variant<Reported, RankSaved, GroupStep, WorkerEnded, Warning, PhaseDone,
                                 RankAlone, AskAlone, RankCopied>;

// ---- Agent <-> zygote ---------------------------------------------------------------------------

inline constexpr std::size_t kMaxSpawnPacketBytes = 64u << 10;

// Agent -> zygote: fork one worker. The packet carries one end of the worker's stream socket pair
// and, for rank 0 of a group, a listening socket for the group's rendezvous (SCM_RIGHTS); the
// worker finds the latter's number in the environment as TUNE_RENDEZVOUS_FD. A zygote that asked
// for it gets for each rank of a group, last, a memfd that they share: TUNE_SHARED_MEMORY_FD.
struct SpawnRequest {
  std::uint64_t request = 0;
  std::string trainable;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.request, s.trainable);
  }
};

// Zygote -> agent, one for each request. The worker exists when pid is not 0, else `error` says why
// it does not.
struct Spawned {
  std::uint64_t request = 0;
  std::uint32_t pid = 0;
  std::string error;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.request, s.pid, s.error);
  }
};

using ZygoteMessage = std::variant<ZygoteReady, Spawned>;

// The zygote's word as the agent takes it: one of another version has an error.
ZygoteReady understood(ZygoteReady ready);

}  // namespace tune
