// AgentMachine: what the node daemon does about commands, workers, the zygote and the passing of
// time, as a pure state machine. Told what happened and when, it queues actions for the launcher.
//
// An attempt has one worker for each rank, all asked of the zygote together; they start when all of
// them exist. The first cause of an error is kept and ends every rank; AttemptEnded is told when
// the last process is reaped. Nothing makes it throw.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/agent/group_pace.h"
#include "core/agent/worker_start.h"
#include "core/messages.h"
#include "core/spawn.h"

namespace tune {

using AgentTime = std::chrono::nanoseconds;  // of a monotonic clock
using WorkerId = std::uint64_t;              // one process asked for: 1, 2 ... never used twice

// ---- Actions ------------------------------------------------------------------------------------

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
struct SpawnWorker {  // ask the zygote for it, with a fresh socket pair
  WorkerId worker;
  std::string trainable;
  bool of_group = false;
  // Set for rank 0 of a group: the attempt_key whose rendezvous socket goes with it.
  std::optional<std::uint64_t> rendezvous;
};
struct SignalWorker {  // the worker's whole process group
  std::uint32_t pid;
  int signal;
};
// Rename the checkpoint to its final name, then call on_promoted.
struct PromoteCheckpoint {
  CheckpointSaved saved;
};
struct ForgetWorker {  // reaped, or it will never exist
  WorkerId worker;
};
// The attempt is over: add the tail of stderr when it failed, remove half-written checkpoints when
// it did not end well, tell the driver.
struct ConcludeAttempt {
  AttemptEnded ended;
};
struct StartZygote {};
struct EndZygote {};

using AgentAction =
    std::variant<TellDriver, TellWorker, RestWorker, SpawnWorker, SignalWorker, PromoteCheckpoint,
                 ForgetWorker, ConcludeAttempt, StartZygote, EndZygote>;

// How a process ended: by a signal, or by itself with an exit code.
struct ProcessEnd {
  bool signalled = false;
  std::int32_t code = 0;
  std::string text;  // "killed by signal 11 (SIGSEGV)", "exited with code 3"
};

// ---- The machine --------------------------------------------------------------------------------

class AgentMachine {
 public:
  // Why an attempt ends, when not cleanly.
  struct Cause {
    Outcome outcome = Outcome::kLost;
    std::string text = {};
    std::int32_t code = 0;
    std::uint32_t rank = 0;
    bool is_of_group = false;  // an exception that the end of another rank may have caused
  };
  static constexpr std::size_t kCreditBytes = 4u << 20;             // unacknowledged, to the driver
  static constexpr AgentTime kTermGrace = std::chrono::seconds(5);  // from SIGTERM to SIGKILL
  // The same of a group: with kEchoSettle before it, no rank outlives another by five seconds.
  static constexpr AgentTime kGroupGrace = std::chrono::seconds(3);
  static constexpr AgentTime kAbandonedGrace = std::chrono::seconds(2);  // the same, no driver
  static constexpr AgentTime kExitGrace = std::chrono::seconds(60);      // after rank 0's last word
  // A rank that throws may only echo the death of another: its cause waits this long for that, and
  // longer if it says itself that it is one of the group: the other may still have to clear away
  // what it was doing before it can tell its own.
  static constexpr AgentTime kSettle = std::chrono::milliseconds(100);
  static constexpr AgentTime kEchoSettle = std::chrono::seconds(1);
  // Ranks that notice by themselves that they wait too long know better why: they may speak first.
  static constexpr AgentTime kGroupPatience = std::chrono::seconds(2);
  // Of a longer time between two turns no more counts against a rank: this process was stopped or
  // got no processor, and so, for all it knows, did the ranks.
  static constexpr AgentTime kLongestTurn = std::chrono::seconds(1);
  // For the zygote to fork the next worker; one that takes longer is ended and started anew.
  static constexpr AgentTime kForkLimit = std::chrono::seconds(20);
  static constexpr int kMaxZygoteDeaths = 3;  // in a row without a worker

  // `can_restart`: whether another zygote can be started after the first.
  AgentMachine(NodeFacts node, bool can_restart);

  void on_command(AgentTime now, Command command);
  void on_zygote(AgentTime now, ZygoteMessage message);
  void on_zygote_died(AgentTime now, const std::string& how);
  void on_worker(AgentTime now, WorkerId worker, WorkerEvent event);
  void on_worker_garbled(AgentTime now, WorkerId worker, const std::string& what);
  void on_exit(AgentTime now, std::uint32_t pid, const ProcessEnd& end);
  // `error` is empty when the checkpoint stands in its final folder.
  void on_promoted(AgentTime now, const CheckpointSaved& saved, const std::string& error);
  void on_driver_gone(AgentTime now);
  void on_backlog(AgentTime now, std::size_t unacknowledged_bytes);
  void on_time(AgentTime now);

  std::optional<AgentTime> next_deadline() const;
  // Replaces the content of `actions` by what is to be done now, in order.
  void take_actions(std::vector<AgentAction>& actions) {
    actions.clear();
    actions.swap(actions_);
  }
  // False while the driver is too far behind: workers are not to be read, but those of groups. A
  // group is held at a step boundary instead: its ranks need each other's words to get there.
  bool reading() const { return reading_; }
  // The worker with this process, 0 when there is none.
  WorkerId worker_of(std::uint32_t pid) const;
  std::vector<LiveAttempt> live() const;
  // Told to end, and every process is gone.
  bool is_over() const { return ending_ && attempts_.empty() && !zygote_alive_; }

 private:
  struct Rank {
    WorkerId worker = 0;
    std::uint32_t pid = 0;  // 0: not there yet
    bool gone = false;      // reaped, or it will never exist
    bool said_end = false;
    bool signalled = false;  // by us
  };
  struct Save {
    std::uint32_t ranks = 0;  // that have saved
    RankSaved leader;
  };
  struct Attempt {
    Launch launch;
    std::vector<Rank> ranks;
    bool started = false;
    bool waiting = false;  // for a verdict
    Milestone until;       // of the last verdict
    AgentTime last_sign{};
    std::optional<GroupPace> pace;        // of several ranks that have started; in watched time
    std::map<std::uint64_t, Save> saves;  // by iteration; not whole in their final folders yet
    std::vector<Reported> held;           // reports that came before an earlier save was whole
    std::optional<Outcome> leader_outcome;
    std::optional<Cause> cause;  // the first
    std::optional<StopAttempt> stop;
    std::optional<AgentTime> stop_deadline;
    std::optional<AgentTime> terminate_at;
    std::optional<AgentTime> kill_at;
  };
  struct Place {
    std::uint64_t attempt;
    std::uint32_t rank;
  };

  void on(AgentTime now, SetupExperiment setup);
  void on(AgentTime now, Launch launch);
  void on(AgentTime now, Continue verdict);
  void on(AgentTime now, StopAttempt stop);
  void on(AgentTime now, KillAttempt kill);
  void on(AgentTime now, Shutdown);
  void on(AgentTime now, ZygoteReady ready);
  void on(AgentTime now, const Spawned& spawned);

  void heard(AgentTime now, Attempt& attempt, Rank& rank, Reported report);
  void heard(AgentTime now, Attempt& attempt, Rank& rank, RankSaved saved);
  void heard(AgentTime now, Attempt& attempt, Rank& rank, GroupStep step);
  void heard(AgentTime now, Attempt& attempt, Rank& rank, WorkerEnded ended);
  void heard(AgentTime now, Attempt& attempt, Rank& rank, Warning warning);
  void heard(AgentTime now, Attempt& attempt, Rank& rank, PhaseDone done);
  void done(AgentTime now, Attempt& attempt, const Rank& rank);
  void hold(Attempt& attempt);
  void tell_held(Attempt& attempt, std::uint64_t up_to);

  Attempt* find(TrialNumber trial, AttemptNumber attempt);
  void request_workers(AgentTime now);
  void start_if_complete(AgentTime now, Attempt& attempt);
  void blame(AgentTime now, Attempt& attempt, Cause cause);
  void end_all(AgentTime now, AgentTime grace);
  void terminate(AgentTime now, Attempt& attempt, AgentTime grace = kTermGrace);
  void signal(Attempt& attempt, int signal);
  bool blame_deserter(AgentTime now, Attempt& attempt);
  void lose(Attempt& attempt, std::string why);
  void gone(AgentTime now, Rank& rank);
  void conclude_finished();
  AttemptEnded verdict_on(const Attempt& attempt) const;
  void zygote_failed(AgentTime now, std::string error);
  void expect_worker(AgentTime now);
  void end_stuck_zygote();
  void drop_ending_requests(AgentTime now);
  std::optional<AgentTime> hang_deadline(const Attempt& attempt) const;
  Cause hang_cause(const Attempt& attempt) const;
  std::optional<AgentTime> group_deadline(const Attempt& attempt) const;
  Cause group_cause(const Attempt& attempt) const;
  std::optional<GroupPace::Awaited> awaited(const Attempt& attempt) const;
  // The time in which this process could have seen what happens.
  AgentTime watched(AgentTime now) const {
    return watched_ + std::min(now - last_turn_, kLongestTurn);
  }
  std::optional<AgentTime> deadline(const Attempt& attempt) const;
  // When the machine has to look again, so that its watched time is `due` at the earliest.
  AgentTime next_look(AgentTime due) const {
    return last_turn_ + std::min(due - watched_, kLongestTurn);
  }
  void check_time(AgentTime now, Attempt& attempt);
  void act(AgentAction action) { actions_.push_back(std::move(action)); }

  NodeFacts node_;
  bool can_restart_;
  std::optional<SetupExperiment> experiment_;
  std::map<std::uint64_t, Attempt> attempts_;  // by attempt_key
  std::map<WorkerId, Place> workers_;          // not gone yet
  std::map<std::uint32_t, WorkerId> pids_;
  std::vector<std::uint64_t> finished_;  // attempts whose last process is gone
  std::map<WorkerId, bool> requests_;    // no process yet; whether the zygote has been asked
  WorkerId last_worker_ = 0;
  bool zygote_alive_ = true;
  bool zygote_ready_ = false;
  std::optional<AgentTime> zygote_due_;  // it owes a worker; in watched time
  bool ready_told_ = false;
  std::string zygote_error_;  // not empty: there will be no workers any more
  int zygote_deaths_ = 0;
  bool reading_ = true;
  bool ending_ = false;
  AgentTime last_turn_{};
  AgentTime watched_{};  // at the last turn
  std::vector<AgentAction> actions_;
};

}  // namespace tune
