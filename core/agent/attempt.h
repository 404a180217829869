// Attempt: one launch of a trial on this node, as a pure state machine: what its ranks and the
// driver say to it, how long it may take, and why it ends. Nothing makes it throw.
//
//   Starting -> Running -> Leaving                  rank 0 has said how it ended
//        \________|___________|_____> Settling      a rank failed: another may know a better cause
//         \_______|___________|__________|_____> Terminating     signalled, then killed
//
// The ranks of a group over several nodes are all its own, some of them behind a link to the agent
// of another node (core/agent/attempt_nodes.cc): one node is the case without links. A node that is
// lost takes its ranks with it, and the blame: what other ranks say of it are echoes.
//
// It is over when its last process is gone and its last checkpoint has its name, and is stored
// where the agent relays: the driver hears of an end after all that goes on from it. Its place is
// another trial's as soon as the processes are gone (PlaceFree).
//
// The states were once optional fields (a cause, an outcome, three deadlines) that every function
// read in its own order. Each new rule then had to say what it meant beside every other field:
// a deadline of a stop that went on to count while the cause settled, an attempt killed for the
// silence of ranks that had said all. Here a state has only the data that count in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/agent/checkpoint_gathering.h"
#include "core/agent/group_pace.h"
#include "core/agent/watched_time.h"
#include "core/agent/worker_start.h"
#include "core/agent_contract.h"
#include "core/worker_contract.h"

namespace tune {

// The conditions that the limits of an attempt depend on.
struct AttemptConditions {
  const SetupExperiment& experiment;
  const WatchedTime& watch;
  bool reading = true;        // false: the driver is too far behind, workers are not listened to
  bool disk_keeps_up = true;  // false: no worker is listened to until it does
};
// The same at the time of an event, and where the actions go.
struct AttemptScene : AttemptConditions {
  AgentTime watched() const { return watch.at(now); }
  AgentTime now{};
  const NodeFacts& node;
  AgentActions& actions;
};

class Attempt {
 public:
  static constexpr const char* kKilled = "killed on the driver's order";
  static constexpr AgentTime kTermGrace = std::chrono::seconds(5);  // from SIGTERM to SIGKILL
  // The same for a group: with kEchoSettle before it, no rank outlives another by five seconds.
  static constexpr AgentTime kGroupGrace = std::chrono::seconds(3);
  static constexpr AgentTime kExitGrace = std::chrono::seconds(60);  // after rank 0's last word
  // A rank that throws may only echo the death of another, so its cause waits this long for a
  // better one. It waits longer if the exception is one of the group: the other rank may still have
  // to clear away its work before it can tell its own cause.
  static constexpr AgentTime kSettle = std::chrono::milliseconds(100);
  static constexpr AgentTime kEchoSettle = std::chrono::seconds(1);
  // Ranks that notice by themselves that they wait too long know the reason better: they may speak
  // first.
  static constexpr AgentTime kGroupPatience = std::chrono::seconds(2);

  // The reason of an attempt's end, when not clean.
  struct Cause {
    Outcome outcome = Outcome::kLost;
    std::string text = {};
    std::int32_t code = 0;
    std::uint32_t rank = 0;
    bool is_of_group = false;    // an exception that the end of another rank may have caused
    bool is_of_node = false;     // a node is to blame, not the trial
    std::uint32_t unlinked = 0;  // the node that never reached this one; 0: none
  };
  // Of a group over several nodes: how long the others may take to link, when one that is linked is
  // so quiet that no rank is blamed for being late, and how long ranks that are to end are waited
  // for on a node that says nothing.
  static constexpr AgentTime kMeet = std::chrono::seconds(60);
  static constexpr AgentTime kQuiet = std::chrono::seconds(3);
  static constexpr AgentTime kSilentEnd = std::chrono::seconds(4);
  // How long a linked node may say nothing: group_timeout, but at least kQuiet, since a link's
  // heartbeats come each second only. Nothing: any time.
  static std::optional<AgentTime> silence_limit(const SetupExperiment& experiment);

  // The ranks on this node, which leads, are the workers first_worker, first_worker + 1 ...
  Attempt(Launch launch, WorkerId first_worker);

  // ---- Events
  void on_launched(const AttemptScene& scene);
  void on_forked(const AttemptScene& scene, std::uint32_t rank, std::uint32_t pid);
  void on_never_forked(const AttemptScene& scene, std::uint32_t rank);
  void on_word(const AttemptScene& scene, std::uint32_t rank, WorkerEvent event);
  void on_nonsense(const AttemptScene& scene, std::uint32_t rank, const std::string& what);
  void on_exit(const AttemptScene& scene, std::uint32_t rank, const ProcessEnd& end);
  // `error` is empty when the checkpoint has its name.
  void on_promoted(const AttemptScene& scene, const CheckpointSaved& saved,
                   const std::string& error);
  // Where the agent relays. `why_not`: empty also for one that a newer one has replaced.
  // `is_of_trial`: its ranks have written what cannot be put together.
  void on_stored(const AttemptScene& scene, CheckpointSaved saved, bool is_stored,
                 const std::string& why_not, bool is_of_trial = false);
  // The checkpoint that it begins with is awaited; it is there, or `error` says why not.
  void await_checkpoint() { awaits_checkpoint_ = true; }
  void on_fetched(const AttemptScene& scene, const std::string& error);
  void on_continue(const AttemptScene& scene, const Continue& verdict);
  void on_stop(const AttemptScene& scene, const StopAttempt& stop);
  // Ends the attempt at once, by no fault of its own.
  void on_loss(const AttemptScene& scene, std::string why, AgentTime grace = kTermGrace);
  void on_kill(const AttemptScene& scene);
  void on_reading_changed(const AttemptScene& scene);
  void on_disk_keeps_up(const AttemptScene& scene);  // again
  void on_time(const AttemptScene& scene);
  // This node was told to end, and so may all its processes have been: a failure from now on is
  // not the trial's.
  void on_node_ends() { leaves_ = true; }
  // This node, or another one of the group, is to leave: the trial has `grace` to save, 0: any
  // time.
  void on_leave(const AttemptScene& scene, const std::string& why, Duration grace);
  // Of a group over several nodes: the lead listens, or cannot; another node said something, if
  // only that it is there; and the link to it is broken.
  void on_group_open(const AttemptScene& scene, std::vector<std::string> addresses,
                     const std::string& error);
  void on_node(const AttemptScene& scene, std::uint32_t node, std::vector<NodeWord> words);
  void on_node_lost(const AttemptScene& scene, std::uint32_t node, const std::string& why);

  // ---- Queries
  std::optional<AgentTime> deadline(const AttemptConditions& on) const;
  const Launch& launch() const { return launch_; }
  WorkerId worker(std::uint32_t rank) const { return ranks_[rank].worker; }
  bool has_order() const { return order_.has_value(); }  // to stop or pause
  LiveAttempt account() const;                           // for the driver
  bool is_starting() const { return std::holds_alternative<Starting>(state_); }
  // The attempt is being ended: ranks that do not exist yet need not be forked.
  bool is_terminating() const { return std::holds_alternative<Terminating>(state_); }
  bool is_awaited(std::uint32_t rank) const { return ranks_[rank].stage == Stage::kAwaited; }
  bool is_over() const;
  bool may_be_over() const { return is_terminating() || is_over(); }
  // Reports the end: first the reports that were held, then how the attempt ended.
  void conclude(const AttemptScene& scene);

 private:
  enum class Stage : std::uint8_t {
    kAwaited,  // of the zygote
    kForked,   // until all ranks are
    kStarted,
    kSaidEnd,  // its last word
    kGone,     // reaped, or it will never exist
  };
  struct Rank {
    WorkerId worker = 0;
    std::uint32_t pid = 0;
    Stage stage = Stage::kAwaited;
    bool signalled = false;  // by us
  };
  struct Save {
    std::uint32_t ranks = 0;  // that have saved
    RankSaved leader;
    bool is_copied = false;    // rank 0 writes its part beside its next steps
    bool is_expected = false;  // by the driver: reports need not wait for it
  };
  struct Order {  // of the driver, to end
    StopAttempt stop;
    std::optional<AgentTime> deadline;
  };

  struct Node {              // another one of a group over several
    std::string awaited_at;  // this address
    AgentTime heard{};       // in watched time
    bool is_linked = false;
    bool is_quiet = false;
    bool is_lost = false;  // or is not to be waited for
    bool disk_keeps_up = true;
    bool owns_folder = false;  // its ranks write where no other node sees it
  };

  struct Starting {};  // not every rank exists
  struct Running {
    bool waiting = false;  // for a verdict
  };
  struct Leaving {  // rank 0 has said its last word: all are to exit
    Outcome outcome;
  };
  struct Settling {  // a rank has thrown; ended at that time
    Cause cause;
    AgentTime terminate_at;
  };
  struct Terminating {  // signalled, killed at that time and again until it is heard
    std::variant<Outcome, Cause> end;
    AgentTime kill_at;
    bool is_settled = false;  // by a loss: what fails later is its echo
  };
  using State = std::variant<Starting, Running, Leaving, Settling, Terminating>;

  void hear(const AttemptScene& scene, std::uint32_t rank, Reported report);
  void hear(const AttemptScene& scene, std::uint32_t rank, RankSaved saved);
  void hear(const AttemptScene& scene, std::uint32_t rank, GroupStep step);
  void hear(const AttemptScene& scene, std::uint32_t rank, WorkerEnded ended);
  void hear(const AttemptScene& scene, std::uint32_t rank, Warning warning);
  void hear(const AttemptScene& scene, std::uint32_t rank, PhaseDone done);
  void hear(const AttemptScene& scene, std::uint32_t rank, RankAlone alone);
  void hear(const AttemptScene& scene, std::uint32_t rank, AskAlone question);
  void hear(const AttemptScene& scene, std::uint32_t rank, RankCopied copied);
  void phase_done(const AttemptScene& scene, std::uint32_t rank);
  void tell(const AttemptScene& scene, std::uint32_t rank, WorkerCommand command) const;
  // Of another node. False: nothing more of it counts.
  bool hear(const AttemptScene& scene, std::uint32_t node, NodeLinks& links);
  bool hear(const AttemptScene& scene, std::uint32_t node, RankForked& forked);
  bool hear(const AttemptScene& scene, std::uint32_t node, FromRank& from);
  bool hear(const AttemptScene& scene, std::uint32_t node, RankGarbled& garbled);
  bool hear(const AttemptScene& scene, std::uint32_t node, RankGone& gone);
  bool hear(const AttemptScene& scene, std::uint32_t node, NodeFails& fails);
  bool hear(const AttemptScene& scene, std::uint32_t node, NodeLeaves& leaves);
  bool hear(const AttemptScene& scene, std::uint32_t node, NodeDisk& disk);
  bool hear(const AttemptScene& scene, std::uint32_t node, PartStored& stored);
  bool hear(const AttemptScene& scene, std::uint32_t node, RankTail& tail);
  bool hear(const AttemptScene&, std::uint32_t, StreamBytes&) { return true; }  // its shell's
  void node_is_back(const AttemptScene& scene, Node& node);
  void end_ranks_elsewhere(const AttemptScene& scene, int signal);
  void forget_node(const AttemptScene& scene, std::uint32_t node);
  bool has_ranks(std::uint32_t node) const;
  bool is_of(std::uint32_t node, std::uint32_t rank) const;
  std::uint32_t first_of(std::uint32_t node) const { return node * launch_.local_ranks(); }
  bool is_here(std::uint32_t rank) const { return rank < launch_.local_ranks(); }
  bool hears_all() const;
  AgentTime link_delay() const;
  void blame_node(const AttemptScene& scene, Cause loss, bool cuts_saves_off);
  void lose_node(const AttemptScene& scene, std::uint32_t number, Cause why);
  void look_at_nodes(const AttemptScene& scene);
  void tell_leader(const AttemptScene& scene, WorkerCommand command) const;
  void tell_held(const AttemptScene& scene);
  bool is_ahead(const Reported& report) const;
  void hold_group(const AttemptScene& scene) const;
  void listen_again(const AttemptScene& scene);
  bool is_alive(const Rank& rank) const;
  bool have_all_said_end() const;

  // ---- Checkpoints of several nodes (attempt_gathering.cc)
  bool gathers(const AttemptConditions& on) const;
  std::set<std::uint32_t> carriers(const AttemptConditions& on) const;
  std::vector<CheckpointPart> parts(const AttemptConditions& on) const;
  void gather(const AttemptScene& scene, CheckpointSaved saved);
  void gather_next(const AttemptScene& scene);
  void part_is_stored(const AttemptScene& scene, std::uint32_t node, const CheckpointSaved& saved,
                      const std::string& why_not);
  void end_gathering(const AttemptScene& scene, const std::string& why_not);
  void give_up(const AttemptScene& scene, CheckpointSaved saved);
  void stop_gathering(const AttemptScene& scene, const std::string& why);
  bool owes_part(const AttemptConditions& on, std::uint32_t node) const;
  bool lose_part(const AttemptScene& scene, std::uint32_t node, const std::string& why);
  bool is_needed(const AttemptConditions& on, std::uint32_t node) const {
    return !nodes_[node].is_lost && (has_ranks(node) || owes_part(on, node));
  }
  void fail_to_save(const AttemptScene& scene, const std::string& why);
  void give_place_back(const AttemptScene& scene);

  // ---- Transitions, each to the state of its name
  void start(const AttemptScene& scene);
  void leave(Outcome outcome);
  void settle(const AttemptScene& scene, Cause cause);
  void terminate(const AttemptScene& scene, std::variant<Outcome, Cause> end, AgentTime grace);
  void terminate_by_loss(const AttemptScene& scene, std::variant<Outcome, Cause> end,
                         AgentTime grace);
  void kill(const AttemptScene& scene, std::variant<Outcome, Cause> end);

  void blame(const AttemptScene& scene, Cause cause);
  void blame_more(const AttemptScene& scene, Settling& settling, Cause cause);
  void explain(std::uint32_t rank, const std::string& why);
  bool blame_deserter(const AttemptScene& scene);
  void end_by_order(const AttemptScene& scene);
  void set_gone(const AttemptScene& scene, std::uint32_t rank);
  void signal(const AttemptScene& scene, int signal);

  const Cause* cause() const;      // null: none is known
  const Outcome* outcome() const;  // of rank 0; null: none is known, or there is a cause
  std::optional<std::variant<Outcome, Cause>> known_end() const;
  AttemptEnded result() const;
  AttemptEnded own_end() const;  // whatever its nodes do

  // ---- Limits
  std::optional<AgentTime> node_deadline(const AttemptConditions& on) const;
  std::optional<AgentTime> limit_of(const AttemptConditions& on, std::uint32_t number) const;
  std::optional<AgentTime> silence_deadline(const AttemptConditions& on) const;
  std::optional<AgentTime> group_deadline(const AttemptConditions& on) const;
  std::optional<GroupPace::Awaited> awaited(const AttemptConditions& on) const;
  Cause silence_cause(const AttemptScene& scene) const;
  Cause group_cause(const AttemptScene& scene) const;

  Launch launch_;
  std::vector<Rank> ranks_;
  std::vector<Node> nodes_;  // of the group, by number; the first is this one
  State state_;
  std::optional<Order> order_;           // counts until it settles or terminates
  Milestone until_;                      // of the last verdict
  std::uint64_t reported_ = 0;           // the iteration of the newest report
  AgentTime last_sign_{};                // of life; in watched time
  std::optional<GroupPace> pace_;        // of several ranks that have started; in watched time
  std::map<std::uint64_t, Save> saves_;  // by iteration; without their final names yet
  std::uint32_t promoting_ = 0;          // of these, those that are being given them
  std::uint32_t storing_ = 0;            // on their way to the experiment's folder
  CheckpointGathering gathering_;        // of a group over several nodes: these
  std::string not_stored_;               // why the newest is not; empty: it is, or may be
  bool awaits_checkpoint_ = false;
  bool has_place_ = true;
  bool leaves_ = false;         // a node of it is to leave
  std::vector<Reported> held_;  // reports that came before an earlier save was whole
  std::map<std::uint32_t, std::string> tails_;  // of ranks that have failed elsewhere
};

}  // namespace tune
