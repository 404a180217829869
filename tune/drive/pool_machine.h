// PoolMachine: how many agents are asked of an engine, which allocations are given back, and when
// a pool that only fails stops asking. A pure state machine: it has no clock and starts nothing.
//
// It decides by the PoolBook, which follows from the journal, and by what is there now. Its answers
// are events for the journal and actions to be carried out at once; an allocation is started only
// when its request is in the book, which it is after the append. So a request that a killed driver
// had journaled is looked for in the engine's list by its name, and nothing that an engine has
// started can be unknown to the next driver. The simpler way, to start first and to note the id,
// leaves jobs behind that nobody stops.
//
// A connected agent is capacity. What the engine lists is a hint: it tells why an allocation waits,
// where it runs, and that it is gone once no agent of it is there. To count the queue's word
// instead, the simpler way, asks for a second job while a first one that is already running still
// stands there as pending, and takes a job for a node whose agent never came.
//
// Where a trial needs several nodes, whole groups are asked for. A node that waits for the rest of
// its group is kept while that may come, longer each time that this was in vain. To give it back as
// an idle one, the simpler way, ends it just before the others come, which then wait for it in
// turn; to keep it without end pays for a node that no trial ever gets.
//
// Trials are never counted against by anything in here: a node that goes, for whatever reason, goes
// by its own words or by the driver's lease.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "tune/control/pool_book.h"
#include "tune/control/pool_room.h"

namespace tune {

// ---- Actions

struct StartAllocation {
  PoolBook::Number number;
  std::string host;                   // empty: any but
  std::vector<std::string> excluded;  // these
};
struct ListAllocations {};
struct StopAllocation {
  PoolBook::Number number;
  std::string id;
  std::string host;
};
struct DrainNode {
  AgentNumber agent;
  std::string cause;
};
// The engine says that its allocation is gone, and it is silent: its lease need not be waited for.
struct TakeForGone {
  AgentNumber agent;
  std::string cause;
};
struct ShowLog {  // the last words of an allocation that died, with this before them
  PoolBook::Number number;
  std::string text;
  std::string host;
};
struct PoolNotice {
  std::string text;
};
struct PoolGivesUp {  // nothing has ever worked: the experiment cannot begin
  std::string why;
};
using PoolAction = std::variant<StartAllocation, ListAllocations, StopAllocation, DrainNode,
                                TakeForGone, ShowLog, PoolNotice, PoolGivesUp>;
using PoolEvent = std::variant<AllocationChanged, PoolOrdered>;

// One allocation, as its engine tells of it.
struct ListedAllocation {
  PoolBook::Number number = 0;
  AllocationState state = AllocationState::kQueued;  // kQueued, kRunning or kEnded
  std::string id = {};
  std::string host = {};
  std::string reason = {};   // for people, in the engine's words
  bool is_hopeless = false;  // it will never run: it is stopped, as a start in vain
};

// ---- The machine

class PoolMachine {
 public:
  using Number = PoolBook::Number;
  using Time = ExperimentTime;

  struct Options {
    std::uint32_t min = 0;
    std::uint32_t max = 16;
    std::uint32_t backlog = 2;
    std::uint64_t places = 1;  // of a node that is not there yet, as of a NodeShare
    int group = 0;             // likewise; both 0: it is not known
    Time idle = std::chrono::minutes(5);
    Time join_within = std::chrono::minutes(10);
    Time poll = std::chrono::seconds(15);
    std::vector<std::string> hosts = {};  // one allocation on each; empty: the engine chooses
    bool leaves_hosts_out = true;         // the engine can be told of hosts that are not wanted
  };
  static constexpr Time kFirstBackOff = std::chrono::seconds(5);  // after a start that went wrong
  static constexpr Time kLastBackOff = std::chrono::minutes(10);
  static constexpr std::uint32_t kBadStarts = 3;  // in a row, and it stops asking
  static constexpr std::uint32_t kBadSubmissions = 10;
  static constexpr Time kSoon = std::chrono::seconds(1);      // between two lists, at least
  static constexpr Time kParting = std::chrono::seconds(30);  // from an agent's end to its job's
  static constexpr Time kRejoin = std::chrono::seconds(60);   // for agents of an earlier driver
  static constexpr Time kUnseen = std::chrono::seconds(10);   // for a start of an earlier driver
  // Lists that show nothing of what the book has ended, before no more are asked for: one may call
  // ended what runs.
  static constexpr int kSureLists = 2;
  static constexpr Time kSilent = std::chrono::seconds(5);      // of an agent, before it is gone
  static constexpr Time kStopAgain = std::chrono::seconds(15);  // after a stop that failed
  static constexpr int kPartWait = 6;  // times `idle`: a node's first wait for the rest of a group
  static constexpr Time kLongestPartWait = std::chrono::hours(24);

  explicit PoolMachine(Options options)
      : options_(std::move(options)), part_wait_(kPartWait * options_.idle) {}

  // ---- What the engine said
  void on_started(Number number, const std::string& id);
  void on_not_started(Number number, const std::string& why);
  // `asked_at`: when the question was put. Where each host is asked: those that have not answered,
  // and why; what they have is neither seen nor missed.
  void on_listed(std::vector<ListedAllocation> listed, Time asked_at,
                 std::set<std::string> silent_hosts = {}, const std::string& why = {});
  void on_not_listed(const std::string& why);
  void on_stopped(Number number, const std::string& why_not);  // empty: it was

  // Call it when what it said before is in the journal.
  void look(Time now, const PoolBook& book, const PoolScene& scene);

  // The engine may have what the book does not: its list is to be asked for.
  bool is_unsure() const { return unsure_since_.has_value(); }

  std::vector<PoolEvent> take_events() { return std::exchange(events_, {}); }
  std::vector<PoolAction> take_actions() { return std::exchange(actions_, {}); }

 private:
  // Facts of an allocation that the book does not keep.
  struct Local {
    bool is_ours = false;  // this driver has asked for it
    bool start_is_asked = false;
    std::optional<std::string> started;      // its id, to be told
    std::optional<std::string> not_started;  // why
    std::optional<ListedAllocation> listed;  // to be told
    std::string host;                        // where it ran, as its end tells; empty: unknown
    Time known_since{};                      // to the engine, as far as this driver can tell
    bool was_listed = false;                 // by this driver's engine
    int missed = 0;                          // lists, one after the other
    std::optional<Time> alone_since;         // its agents are gone
    bool has_node = false;
    bool stop_is_asked = false;
    std::optional<Time> stop_failed_at;  // and is to be asked for again
    bool is_stopped = false;
    AllocationFault fault = AllocationFault::kNone;  // told at its end
    std::string why;                                 // it is to end
    bool is_drained = false;                         // as nobody needs it
  };
  using Scene = PoolScene;

  void take_list(const PoolBook& book, const Scene& scene);
  void stop_orphan(const ListedAllocation& one, const Scene& scene);
  void doubt();
  void look_at(Number number, const Allocation& one, const PoolBook& book, const Scene& scene);
  bool tell_news(Number number, const Allocation& one, Local& local);
  void look_for_start(Number number, const Allocation& one, const PoolBook& book, Local& local);
  void look_for_agent(Number number, const Allocation& one, Local& local, const Scene& scene);
  void change(Number number, const Allocation& one, const ListedAllocation& news);
  void end(Number number, const Allocation& one, AllocationFault fault, std::string why);
  void stop(Number number, const Allocation& one, Local& local);
  // The nodes that may yet come to those that there are.
  struct Plan {
    PoolRoom room;
    std::uint64_t coming = 0;    // nodes of allocations that are on their way
    std::uint64_t may_ask = 0;   // that could be asked for now
    std::uint64_t may_come = 0;  // with those that take the place of what is ending
    std::uint64_t most = 0;      // that the pool may have at the same time
    bool may_complete() const { return room.trials(may_come) > room.trials(0); }
  };
  Plan plan_for(const PoolBook& book, const Scene& scene);
  NodeShare new_node(const Scene& scene);
  void send_drained_away(const PoolBook& book, const Scene& scene);
  void send_useless_away(const PoolBook& book, const Scene& scene, const Plan& plan);
  void note_idle(const Scene& scene, const Plan& plan);
  void give_back(const PoolBook& book, const Scene& scene, const Plan& plan);
  void tell_of_parts(const PoolBook& book, const Scene& scene, const Plan& plan);
  std::optional<Time> parts_wait_since(const Plan& plan) const;
  void cancel_queued(const PoolBook& book, const Scene& scene, const Plan& plan);
  void request(const PoolBook& book, const Scene& scene, const Plan& plan);
  void tell_of_too_few(const Scene& scene, const Plan& plan);
  std::uint64_t staying(const PoolBook& book, const Scene& scene) const;
  std::uint64_t max(const PoolBook& book) const { return book.max().value_or(options_.max); }
  std::uint64_t coming(const PoolBook& book) const;
  std::optional<std::string> free_host(const PoolBook& book,
                                       const std::set<std::string>& taken) const;
  bool stops_asking(const PoolBook& book);
  void list_when_due(const PoolBook& book);

  Options options_;
  Time now_{};
  std::optional<Time> begun_;
  Number first_ = 0;  // of this driver
  std::map<Number, Local> local_;
  std::map<AgentNumber, Time> idle_since_;
  std::optional<NodeShare> seen_;  // of the newest node of the pool
  Time part_wait_;
  std::uint64_t groups_before_ = 0;
  bool told_of_parts_ = false;
  bool told_of_too_few_ = false;
  std::set<AgentNumber> told_to_leave_;
  std::set<AgentNumber> told_gone_;
  std::map<Number, Time> orphans_;    // that were stopped, and when
  std::optional<Time> unsure_since_;  // whether the engine has what the book does not
  int sure_lists_ = 0;                // asked for long enough after that

  bool is_listing_ = false;
  std::optional<Time> listed_at_;  // asked then, at last
  struct List {
    Time asked_at;
    std::vector<ListedAllocation> listed;
    std::set<std::string> silent_hosts;
  };
  std::optional<List> list_;
  bool lists_soon_ = false;
  int failed_lists_ = 0;
  std::set<std::string> told_hosts_;  // that are excluded
  std::set<Number> told_stops_;       // that have failed
  bool gave_up_ = false;

  std::vector<PoolEvent> events_;
  std::vector<PoolAction> actions_;
};

}  // namespace tune
