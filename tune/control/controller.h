// Controller: the pure heart of the driver. It is told events with the time they happened at, and
// answers with the effects it wants: commands for agents, checkpoints to remove, records for
// loggers and reporters. State is a fold over events: the same events in the same order give the
// same state and effects, under the driver, in the simulator and in replay (where commands are
// discarded).
//
// No event makes it throw: an event that does not fit (a message of an old attempt, say) changes
// nothing.
//
// It routes: the state stands in TrialBook (trials), Nodes (agents and their resources), Verdicts
// (the scheduler's decisions), DeviceHealth (places where trials fail at once) and PoolBook (what
// an engine was asked for). Controller holds the consequences that a change in one of them has for
// the others.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agent_contract.h"
#include "core/resources.h"
#include "core/trial.h"
#include "schedulers/trial_scheduler.h"
#include "tune/control/asking.h"
#include "tune/control/attempt_end.h"
#include "tune/control/device_health.h"
#include "tune/control/events.h"
#include "tune/control/nodes.h"
#include "tune/control/numbered_searcher.h"
#include "tune/control/outbox.h"
#include "tune/control/pool_book.h"
#include "tune/control/trial_book.h"
#include "tune/control/verdicts.h"
#include "tune/search/searcher.h"

namespace tune {

struct ControllerSetup {
  SetupExperiment experiment;  // sent to each agent
  std::string plugin;          // the plugin with its trainable; empty: a program's own
  ResourceRequest request;     // of one trial
  Objective objective;         // empty metric: none
  std::uint64_t seed = 0;
  bool fail_fast = false;
  Duration save_grace = std::chrono::seconds(30);  // to save when all ends early; 0: no limit
  Duration probe_after = DeviceHealth::kProbeAfter;
  std::unique_ptr<TrialScheduler> scheduler;  // configured
  std::unique_ptr<Searcher> searcher;         // configured
  SearcherSetup space = {};                   // of it: configurations that a user adds are to fit
};

// The state of the experiment as a whole.
enum class Phase : std::uint8_t {
  kRunning,
  kEnding,        // no more launches; running trials are being stopped (budget, fail_fast)
  kInterrupting,  // the same, but trials are paused to go on later
  kFinished,      // every trial is over
  kInterrupted,   // nothing runs; the journal can be resumed. failure() has a cause in the nodes
  kFailed,        // cannot go on: see failure()
  kLast = kFailed,
};

class Controller {
 public:
  using Sink = Outbox::Sink;
  // Attempts of a node that carry their last checkpoints away without a place.
  static constexpr int kMostFree = 16;

  explicit Controller(ControllerSetup setup);

  // One event. Records go to `sink` while it is handled; their references hold during that call.
  Effects handle(ExperimentTime now, const Event& event, const Sink& sink);

  // When handle(DeadlineReached) is due, in experiment time.
  std::optional<ExperimentTime> next_deadline() const;

  // The question that the searcher is to answer now, beside the loop: made by searcher().question()
  // from the state in which it appears, and told as Proposed. Nothing: there is none.
  std::optional<Asking::Question> question() const;
  const Searcher& searcher() const { return *searcher_; }
  std::int64_t num_samples() const { return num_samples_; }

  // The whole state, MessagePack. A controller of the same setup that restores it goes on as the
  // one that saved it would. Throws Error (kProtocol) when it is not of this version or setup.
  std::string save() const;
  void restore(std::string_view state);

  ExperimentTime now() const { return now_; }  // of the newest event
  Phase phase() const { return phase_; }
  bool is_over() const;  // nothing more will happen by itself
  // The reason why the experiment cannot go on (kFailed): bad input such as a missing trainable. Or
  // why it cannot go on here (kInterrupted): no node is left that could start a trial. A line about
  // an option begins with its key, "trainable: ...".
  const std::string& failure() const { return failure_; }
  const Objective& objective() const { return objective_; }

  const std::deque<Trial>& trials() const { return book_.all(); }
  const TrialBook::Counts& counts() const { return book_.counts(); }
  std::optional<std::uint64_t> total_trials() const { return searcher_->total(); }
  std::optional<TrialNumber> best_trial() const { return book_.best(); }
  std::vector<TrialNumber> pareto() const { return book_.pareto(); }
  std::vector<std::string> scheduler_lines() const { return verdicts_.scheduler().status_lines(); }
  const Placer& placer() const { return nodes_.placer(); }
  const Nodes& nodes() const { return nodes_; }
  bool has_ready_node() const { return nodes_.any_is_ready(); }
  const PoolBook& pool() const { return pool_; }
  const TrialBook::Numbers& running() const { return book_.running(); }
  // Trials that users have paused; and whether nothing runs, or could, but for them.
  const TrialBook::Numbers& held() const { return book_.held(); }
  bool waits_for_user() const { return waits_for_user_; }
  // The number of trials that would begin now if there was room for them; kNoEnd at most.
  std::uint64_t wanted() const;
  static constexpr std::uint64_t kNoEnd = 1'000'000;
  const DeviceHealth& device_health() const { return health_; }

 private:
  void on(const DriverStarted& event);
  void on(const FromAgent& event);
  void on(const AgentLost& event);
  void on(const DeadlineReached& event);
  void on(const InterruptRequested& event);
  void on(const Proposed& event);
  void on(const AllocationChanged& event);
  void on(const PoolOrdered& event);
  void on(const UserOrdered& event);

  void on_agent(AgentNumber agent, const AgentHello& hello);
  void come_back(AgentNumber agent, const AgentHello& hello);
  std::set<AgentNumber> kept_by(const DriverStarted& event) const;
  void say_who_is_kept(const std::set<AgentNumber>& kept);
  bool lacks_words(const FromAgent& event) const;
  void give_up_what_runs(AgentNumber agent, const std::string& cause);
  void say_again(AgentNumber agent, const LiveAttempt& live);
  StopAttempt wished(const Trial& trial) const;  // by a user
  void await_end_of(AgentNumber agent, std::vector<LiveAttempt> unknown);
  void settle_given_up(const LiveAttempt& one);
  void abandoned_has_ended(AgentNumber agent, const AttemptEnded& ended);
  void on_agent(AgentNumber agent, const ZygoteReady& ready);
  void on_agent(AgentNumber agent, const AttemptStarted& started);
  void on_agent(AgentNumber agent, const Reported& report);
  void on_agent(AgentNumber agent, const CheckpointSaved& saved);
  void on_agent(AgentNumber agent, const AttemptEnded& ended);
  void on_agent(AgentNumber agent, const Warning& warning);
  void on_agent(AgentNumber agent, const NodeOut& out);
  void on_agent(AgentNumber agent, const GroupMeets& meets);
  void on_agent(AgentNumber agent, const PlaceFree& free);
  void exclude(AgentNumber agent, const std::string& why);
  void leave(AgentNumber agent, const std::string& cause);
  void say_that_trials_wait(const std::string& why);
  void warn(const std::string& text);
  void say_once_that_nothing_is_saved(const std::string& trainable);
  void expect_metric(const Reported& report);

  bool others_wait() const;
  void resume(Trial& trial);
  bool take_over(Trial& trial, const ResumedAs& as);
  std::optional<Command> replace(Trial& trial, const ResumedAs& as, bool waiting);
  void say_once_that_nothing_is_replaced();

  void retry(Trial& trial);

  // Users' orders. An answer that refuses has changed nothing.
  OrderAnswer obey(const UserOrdered& order);
  OrderAnswer stop(Trial& trial, const UserOrdered& order);
  OrderAnswer pause(Trial& trial, const UserOrdered& order);
  OrderAnswer unpause(Trial& trial, const UserOrdered& order);
  OrderAnswer retry(Trial& trial, const UserOrdered& order);
  OrderAnswer add(const UserOrdered& order);
  OrderAnswer set_num_samples(const UserOrdered& order);
  void take_num_samples(std::int64_t of_driver);
  void hold(Trial& trial);
  void wait_for_user();

  // An attempt is over.
  void show_health(const Trial& trial, Ending ending);
  bool tries_elsewhere(const Trial& trial);
  void tell(const DeviceHealth::Findings& findings);
  void wait_again(Trial& trial);
  void pause(Trial& trial);
  void conclude(Trial& trial, Ending ending, const AttemptEnded& ended);
  void fail(Trial& trial, const AttemptEnded& ended, bool elsewhere);
  void finish(Trial& trial, TrialEnd end);
  void end_attempts(const std::set<AgentNumber>& of, const std::string& cause);
  void lose_parts(Trial& trial, const std::set<AgentNumber>& of, const std::string& cause);
  void part_has_ended(Trial& trial, AgentNumber agent, const AttemptEnded& ended);
  void end_what_is_left(Trial& trial);
  void conclude(Trial& trial);
  void tell_lead(const Trial& trial, Command command);
  bool runs_on(const Trial& trial, AgentNumber agent) const;
  void lose(Trial& trial, const std::string& cause);
  void settle_abandoned(AgentNumber agent);

  // Launches the next trials, and finds out when all are over.
  void fill();
  bool has_room_for_another() const;
  void launch_second_tries();
  enum class Launched : std::uint8_t { kOne, kNone, kLacksProposal };
  Launched launch_next();
  std::optional<Placement> place_next();
  Placement nearer(const Trial& trial, Placement found);
  bool has_more() const;
  bool create_trial();
  void tell(const Trial& trial, const Proposal& proposal);
  std::optional<TrialNumber> choose_next(const TrialBook::Numbers& waiting);
  void ask(std::uint64_t free_places);
  std::uint64_t free_places();
  void launch(Trial& trial, Placement placement);
  Launch launch_of(const Trial& trial) const;
  void settle();
  void stop_running(StopKind kind, Phase phase);
  bool is_stranded(bool some_wait) const;
  void end_experiment(Phase phase);
  void fail_experiment(std::string why);

  // Parts of restore(), in the order in which they stand there.
  void restore_course(PackReader& in);
  void restore_health(PackReader& in, std::uint32_t version);
  void restore_asking(PackReader& in, std::uint32_t version);
  void restore_joining(PackReader& in, std::uint32_t version);
  void restore_orders(PackReader& in, std::uint32_t version);
  void restore_away(PackReader& in, std::uint32_t version);
  void restore_groups(PackReader& in, std::uint32_t version);

  // Set up once
  SetupExperiment experiment_;
  std::string plugin_;
  ResourceRequest request_;
  Objective objective_;
  std::uint64_t seed_;
  bool fail_fast_;
  Duration save_grace_;
  SearcherSetup space_;
  std::unique_ptr<NumberedSearcher> searcher_;

  // State, saved by save() but for what follows from the rest
  Phase phase_ = Phase::kRunning;
  std::string failure_;
  ExperimentTime now_{};
  std::uint32_t agent_contract_ = 3;  // of the driver; 3: of those that did not say so
  std::uint32_t max_failures_ = 0;
  std::uint32_t max_concurrent_trials_ = 0;
  Duration time_budget_{};
  bool asks_late_ = true;        // see DriverStarted
  bool nodes_may_join_ = false;  // see DriverStarted
  bool has_pool_ = false;        // see DriverStarted
  bool spreads_groups_ = false;  // see DriverStarted
  bool gathers_parts_ = false;   // likewise
  std::uint64_t epoch_ = 0;      // of the driver
  bool can_save_ = false;
  bool save_notice_given_ = false;
  bool exhausted_ = false;            // the searcher has no more
  bool metric_was_reported_ = false;  // by any trial
  std::set<std::string> warnings_;    // that were shown
  std::int64_t num_samples_ = 1;
  std::int64_t driver_samples_ = 1;  // as the newest driver was told
  bool waits_for_user_ = false;      // and has said so
  // Attempts of machines that were lost, and may still run behind a broken network; or of one that
  // came back with them, until they have ended.
  std::map<AgentNumber, std::vector<LiveAttempt>> abandoned_;
  // Those that run on under another driver than the one that heard them last, which may not have
  // told them its verdict.
  std::set<TrialNumber> unanswered_;
  // How attempts have ended whose ranks on other nodes are still to be reaped.
  struct Ended {
    AttemptEnded ended;
    bool is_lost = false;  // the node that led it is
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.ended, s.is_lost);
    }
  };
  std::map<TrialNumber, Ended> ended_;

  std::unique_ptr<Outbox> out_ = std::make_unique<Outbox>();  // where book_ finds it after a move
  Nodes nodes_;
  TrialBook book_;
  Verdicts verdicts_;
  DeviceHealth health_;
  Asking asking_;
  PoolBook pool_;
};

}  // namespace tune
