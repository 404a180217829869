// The actions that the agent's pure parts queue, and the words they share with its shell.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/agent/group_words.h"
#include "core/agent_contract.h"
#include "core/relay_contract.h"
#include "core/worker_contract.h"

namespace tune {

using AgentTime = std::chrono::nanoseconds;  // of a monotonic clock
using WorkerId = std::uint64_t;              // one process asked for: 1, 2 ... never used twice

struct TellDriver {
  AgentEvent event;
};
struct TellWorker {
  WorkerId worker;
  WorkerCommand command;
};
struct RestWorker {  // leave it unread for kWorkerRest, unless it has said more already
  WorkerId worker;
};
// Ask the zygote for a worker, with a fresh socket pair. Answered by Spawned.
struct SpawnWorker {
  WorkerId worker;
  std::string trainable;
  bool of_group = false;
  // Set for rank 0 of a group: the attempt_key whose rendezvous socket goes with it.
  std::optional<std::uint64_t> rendezvous;
  std::uint64_t group = 0;  // of_group: the attempt_key of the ranks that share memory
};
struct SignalWorker {  // the worker's whole process group
  std::uint32_t pid;
  int signal;
};
// Give the checkpoint its final name. Answered by on_promoted, now or later.
struct PromoteCheckpoint {
  CheckpointSaved saved;
  std::vector<CheckpointPart> joins = {};  // with the parts of these, which stand beside it
};
// Of an agent that does not see the experiment's folder (core/agent/relay_client.h). Carry the
// checkpoint there; answered by on_stored. Fetch the one that the attempt begins with; answered by
// on_fetched. What is still to be carried of this attempt, or of all, is given up.
struct StoreCheckpoint {
  CheckpointSaved saved;
  CheckpointShare share = {};
};
struct FetchCheckpoint {
  TrialNumber trial;
  AttemptNumber attempt;
  CheckpointOrigin checkpoint;
  std::uint32_t node = 0;  // of the group, that this is
};
struct GiveUpCheckpoints {
  TrialNumber trial;
  AttemptNumber attempt;
};
struct GiveUpRelay {};
struct DropCheckpoint {  // what the ranks of this node have written of it
  CheckpointSaved saved;
};
// Of a rank that has failed where no other node sees its output. Answered by on_tail.
struct ReadTail {
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint32_t rank;
};
struct ForgetWorker {  // reaped, or it will never exist
  WorkerId worker;
};
// Every process of the attempt is gone. Answered by on_concluded, now or later, with the tail of
// the rank's stderr if that is wanted.
struct ConcludeAttempt {
  AttemptEnded ended;
  bool removes_half_written = false;  // the checkpoint that the attempt was writing
  bool wants_stderr_tail = false;
  std::uint32_t node = 0;  // of the group, that this is
};
// Of a group over several nodes, whose links are named by its attempt_key. The lead is to listen for
// each of the others; answered by on_group_open. Another node is to link to its lead.
struct OpenGroup {
  std::uint64_t attempt;
  std::uint32_t others;
};
struct JoinLead {
  std::uint64_t attempt;
  std::uint32_t node;
  std::string address;
};
struct TellNode {
  std::uint64_t attempt;
  std::uint32_t node;
  LeadWord word;
};
struct TellLead {
  std::uint64_t attempt;
  NodeWord word;
};
struct CloseGroup {  // all its links, when the last words are sent
  std::uint64_t attempt;
};
struct StartZygote {};  // answered by on_zygote_started or on_zygote_not_started
struct EndZygote {};    // at once; answered by on_zygote_died

using AgentAction =
    std::variant<TellDriver, TellWorker, RestWorker, SpawnWorker, SignalWorker, PromoteCheckpoint,
                 ForgetWorker, ConcludeAttempt, StartZygote, EndZygote, StoreCheckpoint,
                 FetchCheckpoint, GiveUpCheckpoints, GiveUpRelay, OpenGroup, JoinLead, TellNode,
                 TellLead, CloseGroup, DropCheckpoint, ReadTail>;

// The end of a process: by a signal, or by itself with an exit code.
struct ProcessEnd {
  bool signalled = false;
  std::int32_t code = 0;
  std::string text;      // "killed by signal 11 (SIGSEGV)", "exited with code 3"
  std::string why = {};  // "needed more than its memory of 8 GiB", where that is known
};

// Actions in order, and the time by which the driver has to hear the messages among them.
class AgentActions {
 public:
  // A message that nobody waits for goes to the driver with the next one that somebody waits for,
  // or this much later: each message costs a turn of the driver, with a flush of the journal to
  // disk.
  static constexpr AgentTime kLinger = std::chrono::milliseconds(2);

  void add(AgentAction action);
  void tell_worker(WorkerId worker, WorkerCommand command);
  void tell(AgentTime now, AgentEvent event);
  // Replaces the content of `taken`.
  void take(std::vector<AgentAction>& taken) {
    taken.clear();
    taken.swap(actions_);
  }
  bool is_empty() const { return actions_.empty(); }

  // The time by which queued messages have to be sent; nothing: all are sent.
  const std::optional<AgentTime>& tell_by() const { return tell_by_; }
  void sent() { tell_by_.reset(); }

 private:
  std::vector<AgentAction> actions_;
  std::optional<AgentTime> tell_by_;
};

}  // namespace tune
