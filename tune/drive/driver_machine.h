// DriverMachine: the driver's answer to signals, to agents that fall silent or end, and to the
// passing of time; it also decides the content of the next turn. A pure state machine: it runs
// under the real driver, in the simulator and in the benchmarks, which have the sockets, processes
// and clocks.
//
// The content of a turn is limited in bytes: the events of all agents may come at once (after a
// store or a driver that stood still, say), and a journal entry has a limit. An event is in one
// turn only and an agent's events are in order. Each turn says how far it goes, so that only events
// in the journal are acknowledged to an agent.
//
// What waits for a turn is limited, too. Of what agents told no more is taken than kMaxToldBytes:
// beyond that their frames stay in the sockets, which hold the credit of each agent at most, and
// agents whose credit is spent hold their workers. Meanwhile none of them counts as silent.
//
// A store that does not answer stops turns and nothing else: agents are heard and hear heartbeats,
// signals are obeyed, and workers train on to their milestones. The same turn is tried again until
// the store answers or its patience is over; a private server that ends is started again. The
// simpler way, to wait in the call itself, fails: such a driver obeys no signal, its agents take it
// for gone, and it takes them for silent when it comes back.
//
// Machines that joined are known by what they say alone: no process of this driver's tells of their
// end. Those that the driver before this one had have a lease from its start on. One that is silent
// for a whole lease is lost, and its trials start elsewhere. It may be alive behind a broken
// network; when it is heard again it is dismissed, which ends what it still runs, and may join anew
// as another agent. To take it back as it was, the simpler way, would need both sides to agree
// which of its attempts still count, after one side has said that none does.
//
// A signal goes before everything else that came with it. A service manager or a batch system may
// end the whole experiment by a signal to every process: an attempt that ended by it is
// interrupted, not failed. The events of an agent go before its end: they may hold the reason.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/peers.h"
#include "tune/control/events.h"

namespace tune {

// ---- Actions ------------------------------------------------------------------------------------

struct EndAgent {  // its process, with all workers; on_agent_ended follows
  std::string identity;
};
struct Dismiss {  // a machine that was lost and is heard again: it is told to end what it runs
  AgentNumber agent;
};
struct StartStore {};  // the private server, again
struct Say {           // to the user
  std::string text;
};
// The experiment cannot go on with this driver: it is ended, to be resumed.
struct GiveUp {
  enum class Why : std::uint8_t { kAgent, kStore };
  Why why;
  std::string how;
};
using DriverAction = std::variant<EndAgent, StartStore, Say, GiveUp, Dismiss>;

// The content of the next turn.
struct TurnContents {
  std::vector<Event> events;
  std::vector<std::string> notices;
  // For each agent, its newest event in this turn.
  std::map<AgentNumber, Link::Position> heard;
};

// ---- The machine --------------------------------------------------------------------------------

class DriverMachine {
 public:
  using Time = std::chrono::nanoseconds;  // of a monotonic clock

  struct Options {
    // Whether the end of any agent is that of the driver: the driver's own agent is the only one.
    bool ends_with_agent = true;
    Time store_patience = std::chrono::seconds(300);  // that it may be silent; 0: any time
    Time lease = std::chrono::seconds(60);            // that a machine which joined may be silent
  };
  static constexpr Time kLookEvery = std::chrono::milliseconds(200);  // at the agents
  static constexpr Time kAgentSilence = std::chrono::seconds(20);     // each sends a word a second
  static constexpr Time kAgentEnd = std::chrono::seconds(5);          // after EndAgent
  static constexpr Time kRoomEvery = std::chrono::milliseconds(10);   // is asked for
  static constexpr Time kStatusEvery = std::chrono::milliseconds(100);  // when something changed
  static constexpr Time kStatusAnyway = std::chrono::seconds(1);
  // Of a longer time between two looks no more than this counts against an agent: this process was
  // stopped, or waited for a disk or a store, and its agents may have spoken meanwhile.
  static constexpr Time kLongestRound = std::chrono::seconds(1);
  static constexpr Time kStoreRetry = std::chrono::milliseconds(50);
  static constexpr Time kStoreTold = std::chrono::seconds(1);  // of its silence, before it is told
  // The time that a silent store still gets after a signal.
  static constexpr Time kStoreFarewell = std::chrono::seconds(10);
  // The pause between two starts of a private server that ends each time.
  static constexpr Time kFirstRestart = std::chrono::milliseconds(200);
  static constexpr Time kLastRestart = std::chrono::seconds(5);
  static constexpr Time kWell = std::chrono::seconds(60);  // when it lives for longer
  static constexpr std::size_t kMaxTurnBytes = 8u << 20;   // of events, if there is more than one
  // What waits for a turn.
  static constexpr std::size_t kMaxToldBytes = 64u << 20;
  static constexpr std::size_t kMaxNotices = 1000;  // of more only their number is kept

  explicit DriverMachine(Options options) : options_(options) {}

  // This driver has the epoch; `passed` is the experiment time so far.
  void begin(Time now, ExperimentTime passed);
  ExperimentTime experiment_time(Time now) const { return passed_ + (now - begun_); }

  // ---- Events
  // An agent was started. From now on the driver waits for it, heard or not, and it must not be
  // silent.
  void on_agent_started(const std::string& identity, Time now);
  // A machine that had joined the driver before this one: it is to come back within its lease.
  void on_agent_expected(const std::string& identity, Time now);
  // The agent's process is gone with all of its workers.
  void on_agent_ended(const std::string& identity, const std::string& how);
  // The bytes that agents may still tell before the next turn. 0: their sockets are left alone.
  std::size_t room_for_told() const {
    return is_held_ ? 0 : kMaxToldBytes - std::min(told_bytes_, kMaxToldBytes);
  }
  // Nothing more is read for a while, as when there is no room.
  void hold_told(bool is_held) { is_held_ = is_held; }
  // False: the event is dropped, as a lost agent does not join again.
  bool on_told(Peers::Told&& told);
  // False for a later signal: the driver ends at once.
  bool on_signal(int signal);
  // The process that waits for this driver is gone: as a first signal, this one. It is not counted,
  // as a signal to every process of a job ends that process too, before or after it comes here.
  void on_caller_gone(int signal);
  // The user was told this. It does not follow from the journal, so it is to stand there as well.
  void on_notice(std::string text);
  // A question of the controller's was answered, beside the loop.
  void on_proposed(Proposed proposed) { proposed_ = std::move(proposed); }
  // The pool's decisions, for the journal; they take effect when they are in it.
  void on_pool(Event event) { pool_.push_back(std::move(event)); }
  bool has_pool_events() const { return !pool_.empty(); }
  void on_order(UserOrdered order) { orders_.emplace_back(std::move(order)); }
  // Call it once the events of all agents up to now have been handed over.
  void on_time(Time now, const Peers& peers);
  void on_turn_done();
  // Whether there is room for the effects of agents' events, and of proposals. Without room only
  // signals and deadlines make turns.
  void on_room(bool has_room) { has_room_ = has_room; }
  // A call of a turn has no answer yet, or has one.
  void on_store_silent(const std::string& why);
  void on_store_answered();
  // The private server has ended; StartStore follows.
  void on_server_ended(const std::string& how);
  void on_shown(Time now) { shown_ = now, changed_ = false; }

  // ---- Answers
  // `deadline` is that of the controller. Nothing: there is no reason for a turn.
  std::optional<TurnContents> next_turn(Time now, std::optional<ExperimentTime> deadline,
                                        const Peers& peers);
  // The same when the experiment is over: notices alone.
  std::optional<TurnContents> last_turn();
  // Whether next_turn would give another turn without new input.
  bool has_more(const Peers& peers) const;
  bool has_notices() const { return !notices_.empty(); }
  std::vector<DriverAction> take_actions() { return std::exchange(actions_, {}); }
  bool show_is_due(Time now) const;
  // The time that the machine has nothing to do if nothing happens.
  Time idle_time(Time now, std::optional<ExperimentTime> deadline, const Peers& peers) const;

  bool store_is_silent() const { return silent_since_.has_value(); }
  int signal() const { return signal_; }  // the newest; 0: none
  bool ends_at_once() const { return ends_at_once_; }

 private:
  struct Agent {
    Time last_heard{};          // as the peers have it
    Time heard{};               // the same in watched time, about
    std::optional<Time> end{};  // when EndAgent was asked for, in watched time
    std::string how{};          // it ended, or why it is to be ended
    bool has_ended = false;
    bool has_joined = false;  // by a token; else it is the driver's own
  };
  // An agent that ends while the experiment is interrupted does as it should.
  bool gives_up_with_agent() const { return options_.ends_with_agent && signal_ == 0; }
  void look_for_joined(Time now, const Peers& peers);
  void on_server_well();
  void look_at_store();
  bool is_too_long(Time silence) const;
  void give_up_store(Time waited);
  void look_at(const std::string& identity, Agent& agent, const Peers& peers);
  void end_silent(const std::string& identity, Agent& agent, Time silence);
  bool end_can_be_told(const std::string& identity, const Agent& agent, const Peers& peers) const;
  void take_told(TurnContents& contents, std::size_t bytes);
  std::vector<std::string> take_notices();
  void take_ends(TurnContents& contents, const Peers& peers);

  Options options_;
  Time begun_{};
  ExperimentTime passed_{};
  std::map<std::string, Agent> agents_;  // by identity, until their end is told
  int ended_ = 0;                        // of these
  std::set<AgentNumber> lost_;
  std::set<AgentNumber> joining_;          // have said hello, and are not in agents_ yet
  std::set<AgentNumber> left_;             // have said that they are gone
  std::map<AgentNumber, Time> dismissed_;  // lost ones that joined, and when they were heard
  std::deque<Peers::Told> told_;           // in no turn yet
  std::size_t told_bytes_ = 0;
  bool is_held_ = false;
  bool has_room_ = true;
  std::optional<Proposed> proposed_;  // in no turn yet
  std::deque<Event> pool_;            // in no turn yet
  std::deque<Event> orders_;          // in no turn yet: Requests::kMostOrders at most
  std::optional<int> interrupt_;      // a signal, in no turn yet
  int signal_ = 0;
  bool is_of_caller_ = false;         // and no other came
  std::vector<std::string> notices_;  // in no turn yet
  std::size_t more_notices_ = 0;      // than these
  Time signal_at_{};                  // watched time of the first one
  std::optional<Time> silent_since_;  // the store, in watched time
  std::string silent_why_;
  bool silence_is_told_ = false;
  std::optional<Time> ends_since_;  // the private server, since the last answer
  std::optional<Time> restart_at_;  // in watched time
  std::optional<Time> started_at_;  // the same of its last start, since the last answer
  Time restart_pause_{};
  bool has_given_up_ = false;
  bool ends_at_once_ = false;
  Time looked_{};
  Time watched_{};  // that this process could have seen what happens, up to looked_
  Time shown_{};
  bool changed_ = true;
  std::vector<DriverAction> actions_;
};

}  // namespace tune
