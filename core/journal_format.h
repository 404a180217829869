// The journal's format: what a driver writes into the store and any later build of tune reads back.
// Version kJournalFormat.
//
// Events of one turn of the driver's loop are one entry: a MessagePack array [now, wall, events,
// format, notices, ...], in every format. A build refuses an entry of a newer format than it knows
// before it changes a file or takes the epoch, and reads every older one. The state is what the
// controller makes of all turns, so a turn must give the same state in every build that reads it:
// the meaning of an event never changes, and no value in it is compared with a version of the build
// that reads it.
//
// Fields are only ever added: at the end, by `f.added`, with a default that means "not said"; an
// older build skips fields that it does not know. Such a field leaves the format as it is. Anything
// else raises it, a new kind of event as well, whatever it is for: a build that skipped one would
// go on from a state in which no driver was, and decide otherwise than the journal goes on to say.
// An event of an unknown kind is therefore refused, and never skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/agent_contract.h"
#include "core/clock.h"
#include "core/ids.h"

namespace tune {

// Format 4: names of checkpoints did not hold the attempt. A build that reads only up to it would
// remove checkpoints whose names do. Format 5: a trial was drawn before there was room for it.
// Format 6: no engine started agents. Format 7: no user gave orders. Format 8: every attempt ended
// with its driver. Format 9: every group was on one node. Format 10: an attempt had its place until
// its last checkpoint was stored. Formats 11 and 12: see the last fields of DriverStarted.
inline constexpr std::uint32_t kJournalFormat = 13;
inline constexpr std::uint32_t kFirstJournalFormat = 3;  // of entries that do not name their format

// A driver took over. Open attempts are lost, their trials go on from their last checkpoints; but
// see `keeps_joined`.
struct DriverStarted {
  std::uint64_t epoch = 0;
  bool retry_errored = false;
  // The options that a resume may change.
  std::int64_t num_samples = 1;
  std::uint32_t max_failures = 0;
  std::uint32_t max_concurrent_trials = 0;
  Duration time_budget{};
  // The version that this driver speaks with its agents; an agent's own is compared with it.
  std::uint32_t agent_contract = kAgentContract;
  // A new trial is drawn when there is room for it, and not before. Up to format 5 one that waited
  // for room was there already: schedulers were told of it earlier, and may have decided otherwise.
  bool asks_late = true;
  // Nodes may join: where none is left that could hold a trial, trials wait for one.
  bool nodes_may_join = false;
  // An engine starts agents: waiting for them is told by the pool, with what they wait for.
  bool has_pool = false;
  // Machines that have joined are waited for, and what runs there goes on; but not where all trials
  // were being ended.
  bool keeps_joined = false;
  // A group goes over several nodes where none has room for it. Up to format 9 it waited for one.
  bool spreads_groups = true;
  // Also over nodes that do not see the experiment's folder. Up to agent contract 10 these took no
  // part.
  bool gathers_parts = true;
  // Many proposals are asked for at once only where a stock of as many is wanted. Up to format 11
  // they were wherever places were free.
  bool asks_for_few = true;
  // A user who keeps a trial back ends its second try elsewhere. Up to format 11 its first place
  // stayed in doubt.
  bool forgets_held = true;
  // A replaced trial that is stopped before it saves keeps its origin: a user may try it again. Up
  // to format 12 it began anew.
  bool keeps_origins = true;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.epoch, s.retry_errored, s.num_samples, s.max_failures, s.max_concurrent_trials,
      s.time_budget);
    f.added_or(s.agent_contract, 3u);
    f.added_or(s.asks_late, false);
    f.added(s.nodes_may_join, s.has_pool, s.keeps_joined);
    f.added_or(s.spreads_groups, false);
    f.added_or(s.gathers_parts, false);
    f.added_or(s.asks_for_few, false);
    f.added_or(s.forgets_held, false);
    f.added_or(s.keeps_origins, false);
  }
};
struct FromAgent {
  AgentNumber agent;
  AgentEvent event;
  std::uint64_t number = 0;  // among all that the agent ever told, to any driver; 0: not said
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.agent, s.event);
    f.added(s.number);
  }
};
struct AgentLost {
  AgentNumber agent;
  std::string cause;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.agent, s.cause);
  }
};
// `now` has passed Controller::next_deadline().
struct DeadlineReached {
  template <class Self, class F>
  static void fields(Self&, F& f) {
    f();
  }
};
// The user or the environment wants the experiment to end here, resumable.
struct InterruptRequested {
  std::int32_t signal = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.signal);
  }
};
// The searcher's answer to a question of the controller (tune/control/asking.h), made beside the
// driver's loop. It holds the configurations to come, with the numbers that explain them.
struct Proposed {
  std::uint64_t question = 0;
  Duration took{};
  Packed answer;      // for Searcher::answer
  std::string error;  // it could not be made; the answer is empty then
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.question, s.took, s.answer, s.error);
  }
};

// The state of an allocation that the pool has asked an engine for.
enum class AllocationState : std::uint8_t {
  kRequested,  // not yet, or not known to be, with the engine
  kStarted,    // the engine has taken it
  kQueued,     // it waits in the engine's queue
  kRunning,
  kEnded,  // or it never was
  kLast = kEnded,
};
// The fault of one that has ended without any use.
enum class AllocationFault : std::uint8_t {
  kNone,
  kSubmission,  // the engine did not take it
  kStart,       // no agent of it took part
  kLast = kStart,
};
// A request is here before the engine hears of it, so that the next driver can find by its name
// what this one did not live to see.
struct AllocationChanged {
  std::uint64_t number = 0;  // 1, 2 ... of the experiment
  AllocationState state = AllocationState::kRequested;
  std::string id;      // the engine's; empty: unknown yet
  std::string host;    // where it is to run, or runs; empty: unknown
  std::string reason;  // for people: why it waits, or how it ended
  AllocationFault fault = AllocationFault::kNone;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.state, s.id, s.host, s.reason, s.fault);
  }
};
// A user, or the pool itself after starts that went wrong, changes how many agents it may have, and
// where.
struct PoolOrdered {
  std::optional<std::uint32_t> max;
  std::optional<bool> paused;
  std::string cause;
  std::string drained = {};  // this host has no agents until the pool is resumed; empty: none
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.max, s.paused, s.cause);
    f.added(s.drained);
  }
};

// The orders of a user to a sweep that runs.
enum class OrderKind : std::uint8_t {
  kStop,     // the trial ends, as one that its scheduler stops
  kPause,    // the trial is saved and stays PAUSED, until
  kUnpause,  // this
  kRetry,    // a trial that failed or was stopped goes on
  kAdd,      // a trial with `config`; what it leaves out is drawn
  kNote,     // `text` is about the trial
  kNumSamples,
  kLast = kNumSamples,
};
// A user's order. One that does not fit changes nothing: the answer says why.
struct UserOrdered {
  OrderKind kind = OrderKind::kNote;
  TrialNumber trial;  // but for kAdd and kNumSamples
  std::string user;
  std::string text;  // the user's reason, may be empty; or the note
  Packed config;     // kAdd
  std::int64_t num_samples = 0;
  std::uint64_t ticket = 0;  // of the request that is answered; it decides nothing
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.kind, s.trial, s.user, s.text, s.config, s.num_samples, s.ticket);
  }
};

using Event = std::variant<DriverStarted, FromAgent, AgentLost, DeadlineReached, InterruptRequested,
                           Proposed, AllocationChanged, PoolOrdered, UserOrdered>;

struct Turn {
  ExperimentTime now{};
  WallTime wall{};
  std::vector<Event> events;
  std::uint32_t format = kJournalFormat;  // of the build that wrote it
  // Notices of the driver itself, as the console showed them: for events.jsonl.
  std::vector<std::string> notices{};
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.now, s.wall, s.events);
    f.added_or(s.format, kFirstJournalFormat);
    f.added(s.notices);
  }
};

// Throws Error (kProtocol), naming both formats, when this build does not know this one yet.
void refuse_newer_format(std::uint32_t format);
// The turn in an entry. Throws Error (kProtocol), naming both formats, when the entry is of a newer
// one, whatever else it holds.
Turn turn_of(std::string_view entry);

}  // namespace tune
