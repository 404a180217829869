// ZygoteSupervisor: keeps a node's zygote alive and hands it the workers that are wanted. Pure.
//
// A zygote may fail to start, die, stand still, load without end, or fail to fork: a full process
// table or a library on a file system that is away for a moment is not a reason to end a sweep. A
// failure is tried again at once, then after pauses that double. Only kMaxFailures in a row without
// a worker in between put this node out: running attempts go on, no more are started here. A node
// on which the trainables could never be loaded says so as ZygoteReady with an error: that is a
// mistake of the input. A zygote that cannot be killed puts the node out as well: another must not
// be started beside it.
//
// Trying at once three times and then giving up, the simpler way, turns two seconds without memory
// into the end of a node; trying for ever hides a node that will never start a worker again.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/agent/watched_time.h"
#include "core/worker_contract.h"

namespace tune {

class ZygoteSupervisor {
 public:
  // The time for the zygote to fork the next worker; a slower zygote is ended and started anew.
  static constexpr AgentTime kForkLimit = std::chrono::seconds(20);
  static constexpr AgentTime kLoadingNotice = std::chrono::seconds(10);  // and each so much later
  // The time for the zygote to load the trainables: the first load of a large library over a slow
  // network takes minutes. Counted in notices, so that a machine that slept does not end it.
  static constexpr AgentTime kLoadLimit = std::chrono::minutes(10);
  // The time for it to die once it is killed: a file system that is away may hold it, or its
  // output.
  static constexpr AgentTime kDeathLimit = std::chrono::minutes(10);

  static constexpr int kMaxFailures = 8;       // in a row without a worker
  static constexpr int kMaxFirstFailures = 3;  // the same before the trainables were ever loaded
  // The pause before the third try (the second comes at once); doubled for each that follows.
  static constexpr AgentTime kFirstPause = std::chrono::seconds(1);
  static constexpr AgentTime kLongestPause = std::chrono::seconds(30);
  // The pause before this try, counted from 1.
  static AgentTime pause_before(int attempt);

  struct Options {
    bool can_restart = true;  // whether another zygote can be started after the first
    std::string loads;        // the plugin, or the program, in messages
  };
  ZygoteSupervisor(Options options, const WatchedTime& watch, AgentActions& actions)
      : options_(std::move(options)), watch_(watch), actions_(actions) {}

  void start(AgentTime now);
  void end();  // for good

  // ---- Events
  void on_started(AgentTime now, std::uint32_t pid);
  void on_not_started(AgentTime now, const std::string& error);
  void on_ready(AgentTime now, ZygoteReady ready);
  void on_died(AgentTime now, const std::string& how);
  // Whether this worker was asked for and exists now.
  bool on_spawned(AgentTime now, const Spawned& spawned);
  void on_time(AgentTime now);
  std::optional<AgentTime> deadline() const;

  // ---- Workers
  void request(AgentTime now, SpawnWorker worker);
  // True: it will never exist. False: the zygote has been asked, and may still fork it.
  bool withdraw(WorkerId worker);

  bool is_gone() const { return std::holds_alternative<Gone>(state_); }  // for good
  // Its first words, when it had loaded the trainables; nothing: it has not yet.
  const std::optional<ZygoteReady>& ready() const { return ready_; }
  // The reason why there will be no workers any more; empty: there may be.
  const std::string& given_up() const { return given_up_; }

 private:
  struct Unborn {};  // start() is still to be called
  struct Loading {
    AgentTime since;
    AgentTime told;  // that it takes long
    std::uint32_t pid;
    int notices = 0;
  };
  struct Ready {
    std::optional<AgentTime> due;    // it owes a worker; in watched time
    std::optional<AgentTime> pause;  // until then it is asked for none: it could not fork
  };
  // Told to; its death is awaited.
  struct Ending {
    std::string failure = {};           // what it failed at; empty: it is wanted no more
    std::optional<AgentTime> due = {};  // its death, in watched time
  };
  struct Paused {  // there is none
    AgentTime until;
  };
  struct Gone {};  // and there will be none any more
  struct Request {
    SpawnWorker spawn;
    bool asked = false;
  };

  void ask(AgentTime now);
  void expect_worker(AgentTime now, Ready& ready);
  void look_at_loading(AgentTime now, Loading& loading);
  void end_failed(AgentTime now, std::string failure);
  void end_process(Ending ending);
  std::optional<AgentTime> count_failure(AgentTime now, const std::string& failure);
  void start_again(AgentTime now, const std::string& failure);
  void give_up(AgentTime now, const std::string& failure);
  void retract();

  Options options_;
  const WatchedTime& watch_;
  AgentActions& actions_;
  std::variant<Unborn, Paused, Loading, Ready, Ending, Gone> state_;
  std::map<WorkerId, Request> requests_;  // there is no process yet
  int failures_ = 0;                      // in a row
  std::optional<ZygoteReady> ready_;
  bool ends_ = false;
  std::string given_up_;
};

}  // namespace tune
