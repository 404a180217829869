// AgentMachine: the node daemon's answer to commands, workers, the zygote and the passing of time,
// as a pure state machine. It is told each happening and its time, and queues actions for its
// shell.
//
// It routes: each attempt is a state machine of its own (attempt.h), with one worker for each rank,
// all asked of the zygote together; the zygote has a supervisor (zygote_supervisor.h). No call
// makes it throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/agent/attempt.h"
#include "core/agent/attempt_part.h"
#include "core/agent/watched_time.h"
#include "core/agent/zygote_supervisor.h"
#include "core/agent_contract.h"
#include "core/worker_contract.h"

namespace tune {

// An agent that has joined by a token may leave, and outlives its driver for a while.
struct Stay {
  std::optional<AgentTime> until = {};  // its allocation ends: it is to have left by then
  AgentTime drain{};               // so long before that it leaves
  AgentTime idle{};                // it leaves when it had no trial for so long; 0: it does not
};

struct AgentFacts {
  AgentHello hello;  // without its live attempts
  std::string once_directory;
  ZygoteSupervisor::Options zygote;
  Stay stay = {};
};

class AgentMachine {
 public:
  static constexpr std::size_t kCreditBytes = 4u << 20;  // unacknowledged, to the driver
  static constexpr AgentTime kAbandonedGrace = std::chrono::seconds(2);  // no driver: to SIGKILL
  static constexpr AgentTime kFarewell = std::chrono::seconds(5);  // for the last acknowledgement
  // Between the last moment to save and the end of an allocation: SIGTERM to SIGKILL, and farewell.
  static constexpr AgentTime kEndMargin = Attempt::kTermGrace + kFarewell;
  // A signal to end may be meant for the whole sweep: then the driver got it as well, and gives the
  // orders. The agent leaves by itself only after this much time without an order.
  static constexpr AgentTime kDriverFirst = std::chrono::seconds(2);

  explicit AgentMachine(AgentFacts facts);
  AgentMachine(const AgentMachine&) = delete;  // its parts refer to each other

  // The driver's own agent starts the zygote first, before there is any socket, then greets the
  // driver. One that has joined greets first, and starts when it knows what to load.
  void start(AgentTime now);
  void on_connected(AgentTime now);
  // It cannot take part, and leaves.
  void on_unfit(AgentTime now, const std::string& why);
  // Of one that has joined: a word of its driver; one that it hears for the first time, by the
  // number of its life; and that the last one has ended in order, so that no other is to come.
  void on_driver_heard(AgentTime now) { driver_heard_ = now; }
  void on_other_driver(AgentTime now, std::uint64_t epoch);
  void on_experiment_over(AgentTime now);
  // Of one that has joined: no driver takes it any more.
  void on_refused(AgentTime now, const std::string& why) { leave(now, why); }

  void on_command(AgentTime now, Command command);
  void on_zygote_started(AgentTime now, std::uint32_t pid);
  void on_zygote_not_started(AgentTime now, const std::string& error);
  void on_zygote(AgentTime now, ZygoteMessage message);
  void on_zygote_died(AgentTime now, const std::string& how);
  void on_worker(AgentTime now, WorkerId worker, WorkerEvent event);
  void on_worker_garbled(AgentTime now, WorkerId worker, const std::string& what);
  void on_exit(AgentTime now, std::uint32_t pid, const ProcessEnd& end);
  // `error` is empty when the checkpoint stands in its final folder.
  void on_promoted(AgentTime now, const CheckpointSaved& saved, const std::string& error);
  // Of one whose trials write into a folder of its own, which is this one: before it starts.
  // `is_alone`: no other agent sees it.
  void on_own_folder(const std::string& folder, bool is_alone = true);
  // `is_of_trial`: what its ranks have written cannot be put together.
  void on_stored(AgentTime now, const CheckpointSaved& saved, bool is_stored,
                 const std::string& why_not, bool is_of_trial = false);
  // `is_of_node`: the error is that this node cannot hold it.
  void on_fetched(AgentTime now, TrialNumber trial, AttemptNumber attempt, const std::string& error,
                  bool is_of_node);
  void on_concluded(AgentTime now, AttemptEnded ended);
  // Of groups over several nodes, by attempt_key: this node listens for the others of one that it
  // leads, or cannot; another node of it said something; the lead of one did, if only that it is
  // there; and the link to such a node (0: the lead) is broken.
  void on_group_open(AgentTime now, std::uint64_t attempt, std::vector<std::string> addresses,
                     const std::string& error);
  void on_node(AgentTime now, std::uint64_t attempt, std::uint32_t node,
               std::vector<NodeWord> words);
  void on_lead(AgentTime now, std::uint64_t attempt, std::vector<LeadWord> words);
  void on_tail(AgentTime now, const ReadTail& of, const std::string& text);
  void on_link_broken(AgentTime now, std::uint64_t attempt, std::uint32_t node,
                      const std::string& why);
  void on_driver_gone(AgentTime now);
  // One that has joined finds another experiment's driver where its own was, and nobody else. What
  // runs here, or was not told yet, is kept as long as without any driver; else it takes part
  // there. True: it is kept.
  bool on_other_experiment(AgentTime now);
  // This process was told to end: trials save, and it ends when they have.
  void on_signal(AgentTime now, const std::string& name);
  void on_sent() { actions_.sent(); }  // all queued messages are on their way
  // The size of the events that are not acknowledged. Call it before is_over().
  void on_backlog(AgentTime now, std::size_t unacknowledged_bytes);
  // Whether files are written about as fast as is wanted. While they are not, no worker is to be
  // read, of a group or not: its messages may ask for more writes. No worker is blamed for silence
  // then.
  void on_disk(AgentTime now, bool keeps_up);
  void on_time(AgentTime now);

  // Whether queued messages are due, or may wait a moment for the next ones.
  bool is_due_to_send(AgentTime now) const;
  std::optional<AgentTime> next_deadline() const;
  // Replaces the content of `actions` by what is to be done now, in order.
  void take_actions(std::vector<AgentAction>& actions) { actions_.take(actions); }
  // False while the driver is too far behind: workers are not to be read, except those of groups. A
  // group is held at a step boundary instead, as its ranks need each other's messages to get there.
  bool reading() const { return reading_; }
  // The worker with this process, 0 when there is none.
  WorkerId worker_of(std::uint32_t pid) const;
  std::vector<LiveAttempt> live() const;  // whose end was not told yet
  // The agent was told to end, every process is gone, and the driver knows, or has had kFarewell
  // for it.
  bool is_over() const;
  // The time that trials have to save if it leaves now; 0: any.
  Duration save_grace(AgentTime now) const;
  // It would take more trials from the next driver.
  bool stays() const { return !ending_ && leave_cause_.empty() && zygote_.given_up().empty(); }
  // The reason of its end, as far as its user is to know; empty: the experiment is over.
  const std::string& end_cause() const { return end_cause_; }
  bool joins_again() const { return joins_again_; }
  // No driver came back in time, or another experiment's did.
  bool has_lost_driver() const { return hello_.joined && !has_driver_; }
  bool was_told_to_end() const { return was_told_to_end_; }  // by a signal, at whatever time

 private:
  // By attempt_key. An agent leads an attempt or has a part of it.
  using Attempts = std::map<std::uint64_t, Attempt>;
  using Parts = std::map<std::uint64_t, AttemptPart>;
  struct Place {
    std::uint64_t attempt;
    std::uint32_t rank;
  };

  void on(AgentTime now, SetupExperiment setup);
  void on(AgentTime now, Launch launch);
  void on(AgentTime now, const Continue& verdict);
  void on(AgentTime now, const StopAttempt& stop);
  void on(AgentTime now, const KillAttempt& kill);
  void on(AgentTime now, const Shutdown& shutdown);
  void on(AgentTime now, const Drain& drain);
  void on(AgentTime, const NewToken&) {}  // its shell connects with it
  void on(AgentTime now, ZygoteReady ready);
  void on(AgentTime now, const Spawned& spawned);

  AttemptConditions conditions() const { return {experiment_, watch_, reading_, disk_keeps_up_}; }
  AttemptScene scene(AgentTime now) { return {conditions(), now, node_, actions_}; }
  Attempts::iterator find(TrialNumber trial, AttemptNumber attempt);
  std::string why_not_launched() const;
  void launch_part(AgentTime now, Launch launch);
  void fetch_checkpoint(auto& attempt);
  void request_workers(AgentTime now, const Launch& launch, WorkerId first);
  // Calls what(attempt or part) for that one, or for each, and tidies up after it.
  template <class What>
  void with(AgentTime now, std::uint64_t attempt, What what);
  template <class What>
  void with_all(AgentTime now, What what);
  bool has_attempts() const { return !attempts_.empty() || !parts_.empty(); }
  void end_all(AgentTime now, AgentTime grace);
  void end_unborn(AgentTime now);
  template <class Map>
  void tidy(AgentTime now, Map& map, typename Map::iterator attempt);
  void tidy_all(AgentTime now);
  void leave(AgentTime now, const std::string& cause);
  void leave_if_due(AgentTime now);
  std::optional<AgentTime> stay_ends_at() const;
  void end_stay_if_due(AgentTime now);
  std::string why_stay_ends(AgentTime now) const;
  void check_farewell(AgentTime now);

  AgentHello hello_;
  Stay stay_;
  NodeFacts node_;
  SetupExperiment experiment_;
  bool is_set_up_ = false;
  WatchedTime watch_;
  AgentActions actions_;
  ZygoteSupervisor zygote_;
  Attempts attempts_;
  Parts parts_;
  std::map<WorkerId, Place> workers_;  // not gone yet
  std::map<std::uint32_t, WorkerId> pids_;
  WorkerId last_worker_ = 0;
  std::set<std::pair<TrialNumber, AttemptNumber>> concluding_;  // over, and not reported yet
  std::size_t unacknowledged_bytes_ = 0;
  bool reading_ = true;
  bool disk_keeps_up_ = true;
  bool has_driver_ = true;
  bool was_told_to_end_ = false;
  bool ending_ = false;
  std::string leave_cause_;            // not empty: told to end by a signal
  std::optional<AgentTime> leave_at_;  // unless the driver orders it before
  bool leaving_ = false;
  AgentTime driver_heard_{};  // of one that has joined
  std::optional<AgentTime> idle_since_;
  std::string end_cause_;
  bool joins_again_ = false;
  std::optional<AgentTime> farewell_until_;
  bool farewell_is_over_ = false;
};

}  // namespace tune
