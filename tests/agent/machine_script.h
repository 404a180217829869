// Drives an AgentMachine and shows its actions as short lines of text.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/agent/agent_machine.h"

namespace tune::testing {

inline std::string show(const AgentEvent& event) {
  struct Shower {
    std::string operator()(const AgentHello&) const { return "hello"; }
    std::string operator()(const ZygoteReady& ready) const {
      return ready.error.empty() ? "ready" : "not ready: " + ready.error;
    }
    std::string operator()(const AttemptStarted& started) const {
      return "started " + std::to_string(started.pid);
    }
    std::string operator()(const Reported& report) const {
      return "report " + std::to_string(report.iteration);
    }
    std::string operator()(const CheckpointSaved& saved) const {
      static const char* const kinds[] = {"saved ", "saved here ", "given up "};
      return kinds[static_cast<int>(saved.storing)] + std::to_string(saved.iteration);
    }
    std::string operator()(const AttemptEnded& ended) const { return "ended: " + ended.cause; }
    std::string operator()(const Warning& warning) const { return "warning " + warning.text; }
    std::string operator()(const NodeOut& out) const { return "node out: " + out.cause; }
    std::string operator()(const PlaceFree&) const { return "place free"; }
    std::string operator()(const GroupMeets& meets) const {
      return "group meets at " + std::to_string(meets.addresses.size()) + " addresses";
    }
  };
  return std::visit(Shower{}, event);
}

inline std::string show(const WorkerCommand& command) {
  if (const auto* word = std::get_if<HoldGroup>(&command)) return word->hold ? "hold" : "go on";
  if (const auto* others = std::get_if<OthersAlone>(&command)) {
    return others->any ? "others are alone" : "nobody else is alone";
  }
  static const char* const names[] = {"start", "continue", "stop", "group step"};
  return names[command.index()];
}

inline std::string show(const LeadWord& word) {
  if (std::holds_alternative<StartRanks>(word)) return "start ranks";
  if (const auto* end = std::get_if<EndRanks>(&word)) {
    return "end ranks by " + std::to_string(end->signal);
  }
  if (const auto* store = std::get_if<StorePart>(&word)) {
    return "store part of " + std::to_string(store->saved.iteration);
  }
  if (const auto* drop = std::get_if<DropPart>(&word)) {
    return "drop part of " + std::to_string(drop->saved.iteration);
  }
  if (std::holds_alternative<ReleaseNode>(word)) return "released";
  const auto* to = std::get_if<ToRank>(&word);
  return to == nullptr ? "bytes" : "rank " + std::to_string(to->rank) + ": " + show(to->command);
}

inline std::string show(const NodeWord& word) {
  struct Shower {
    std::string operator()(const NodeLinks& links) const {
      return "node " + std::to_string(links.node) + " links";
    }
    std::string operator()(const RankForked& forked) const {
      return "rank " + std::to_string(forked.rank) + " is " + std::to_string(forked.pid);
    }
    std::string operator()(const FromRank& from) const {
      return "word of rank " + std::to_string(from.rank);
    }
    std::string operator()(const RankGarbled& garbled) const { return garbled.what; }
    std::string operator()(const RankGone& gone) const {
      return "rank " + std::to_string(gone.rank) + " is gone: " + gone.text;
    }
    std::string operator()(const NodeFails& fails) const { return "fails: " + fails.why; }
    std::string operator()(const NodeLeaves& leaves) const { return "leaves: " + leaves.why; }
    std::string operator()(const NodeDisk& disk) const {
      return disk.keeps_up ? "disk keeps up" : "disk is slow";
    }
    std::string operator()(const StreamBytes&) const { return "bytes"; }
    std::string operator()(const RankTail& tail) const {
      return "tail of rank " + std::to_string(tail.rank) + ": " + tail.text;
    }
    std::string operator()(const PartStored& stored) const {
      const std::string end = stored.why_not.empty() ? " is stored" : ": " + stored.why_not;
      return "part of " + std::to_string(stored.saved.iteration) + end;
    }
  };
  return std::visit(Shower{}, word);
}

inline std::string show(const AgentAction& action) {
  const auto number = [](auto value) { return std::to_string(value); };
  struct Shower {
    decltype(number)& n;
    std::string operator()(const TellDriver& tell) const { return "driver: " + show(tell.event); }
    std::string operator()(const TellWorker& tell) const {
      return "worker " + n(tell.worker) + ": " + show(tell.command);
    }
    std::string operator()(const SpawnWorker& spawn) const {
      return "spawn " + n(spawn.worker) + (spawn.rendezvous ? " with rendezvous" : "");
    }
    std::string operator()(const SignalWorker& signal) const {
      return "signal " + n(signal.signal) + " to " + n(signal.pid);
    }
    std::string operator()(const PromoteCheckpoint& promote) const {
      const std::size_t parts = promote.joins.size();
      return "promote " + n(promote.saved.iteration) + (parts > 0 ? " with " + n(parts) : "");
    }
    std::string operator()(const ForgetWorker& forget) const {
      return "forget " + n(forget.worker);
    }
    std::string operator()(const ConcludeAttempt& conclude) const {
      const AttemptEnded& ended = conclude.ended;
      return "conclude " + n(ended.trial.value) + ": " + outcome_name(ended.outcome) + ", rank " +
             n(ended.rank) + ", code " + n(ended.code) + ", " + ended.cause;
    }
    std::string operator()(const RestWorker& rest) const { return "rest " + n(rest.worker); }
    std::string operator()(const StoreCheckpoint& store) const {
      const std::string what = store.share.part ? "part of "
                               : store.share.joins.empty()
                                   ? ""
                                   : n(store.share.joins.size()) + " parts of ";
      return "store " + what + n(store.saved.iteration);
    }
    std::string operator()(const FetchCheckpoint& fetch) const {
      return "fetch " + n(fetch.checkpoint.iteration) + " of trial " +
             n(fetch.checkpoint.trial.value);
    }
    std::string operator()(const GiveUpCheckpoints&) const { return "give up checkpoints"; }
    std::string operator()(const GiveUpRelay&) const { return "give up the relay"; }
    std::string operator()(const DropCheckpoint& drop) const {
      return "drop " + n(drop.saved.iteration);
    }
    std::string operator()(const ReadTail& tail) const { return "read tail of " + n(tail.rank); }
    std::string operator()(const OpenGroup& open) const {
      return "open group for " + n(open.others);
    }
    std::string operator()(const JoinLead& join) const {
      return "node " + n(join.node) + " joins " + join.address;
    }
    std::string operator()(const TellNode& tell) const {
      return "to node " + n(tell.node) + ": " + show(tell.word);
    }
    std::string operator()(const TellLead& tell) const { return "to lead: " + show(tell.word); }
    std::string operator()(const CloseGroup&) const { return "close group"; }
    std::string operator()(const StartZygote&) const { return "start zygote"; }
    std::string operator()(const EndZygote&) const { return "end zygote"; }
  };
  return std::visit(Shower{number}, action);
}

struct MachineScript {
  std::unique_ptr<AgentMachine> owned = std::make_unique<AgentMachine>(facts());
  AgentMachine& machine = *owned;
  AgentTime now{};

  MachineScript() {
    machine.start(now);
    machine.on_connected(now);
    machine.on_zygote_started(now, 77);
    said();
  }
  static AgentFacts facts() {
    AgentFacts facts;
    facts.hello.pid = 99;
    facts.hello.gpus = {{"0", "", 0}, {"1", "", 0}};
    facts.once_directory = "/once";
    facts.zygote.loads = "libcurve.so";
    return facts;
  }

  std::vector<std::string> said() {
    std::vector<AgentAction> actions;
    machine.take_actions(actions);
    std::vector<std::string> lines;
    for (const AgentAction& action : actions) lines.push_back(show(action));
    machine.on_sent();
    return lines;
  }
  // The actions themselves, of one kind.
  template <class Action>
  std::vector<Action> wanted() {
    std::vector<AgentAction> actions;
    machine.take_actions(actions);
    std::vector<Action> found;
    for (AgentAction& action : actions) {
      if (auto* one = std::get_if<Action>(&action)) found.push_back(std::move(*one));
    }
    return found;
  }
  void pass(AgentTime time) {
    now += time;
    machine.on_time(now);
  }
  // The same as the agent does it: awake at every deadline, until then.
  void watch_for(AgentTime time) {
    const AgentTime end = now + time;
    while (now < end) {
      machine.on_sent();
      const auto deadline = machine.next_deadline();
      pass(deadline && *deadline < end ? *deadline - now : end - now);
    }
  }

  void set_up(Duration hang_timeout = {}, Duration group_timeout = {},
              Duration alone_timeout = {}) {
    SetupExperiment setup;
    setup.experiment_id = "0a1b2";
    setup.experiment_directory = "/results/x";
    setup.trainable = "Curve";
    setup.hang_timeout = hang_timeout;
    setup.group_timeout = group_timeout;
    setup.alone_timeout = alone_timeout;
    machine.on_command(now, setup);
    machine.on_zygote(now, ZygoteReady{{}, {{"Curve", true, false}}, {}});
    said();
  }
  void launch(std::uint32_t trial, std::uint32_t ranks = 1, std::uint64_t restore_iteration = 0) {
    Launch launch;
    launch.trial = {trial};
    launch.attempt = {1};
    launch.ranks = ranks;
    launch.cpu_units = ranks * kUnit;
    launch.restore_iteration = restore_iteration;
    machine.on_command(now, launch);
  }
  void spawned(WorkerId worker, std::uint32_t pid) {
    machine.on_zygote(now, Spawned{worker, pid, {}});
  }
  // A trial whose workers 1 .. ranks run as processes 101 ...
  void run(std::uint32_t trial = 0, std::uint32_t ranks = 1, std::uint64_t restore_iteration = 0) {
    launch(trial, ranks, restore_iteration);
    for (std::uint32_t rank = 1; rank <= ranks; ++rank) spawned(rank, 100 + rank);
    said();
  }
  void report(WorkerId worker, std::uint64_t iteration, bool waiting = false,
              Duration step = std::chrono::seconds(1)) {
    Reported report;
    report.time_this_iter = step;
    report.attempt = {1};
    report.iteration = iteration;
    report.waiting = waiting;
    machine.on_worker(now, worker, report);
  }
  // A word of rank 0 of a group.
  void word(std::uint64_t iteration, GroupAction action) {
    machine.on_worker(now, 1, GroupStep{iteration, action});
  }
  void done(WorkerId worker) { machine.on_worker(now, worker, PhaseDone{}); }
  void ask_alone(WorkerId worker) { machine.on_worker(now, worker, AskAlone{}); }
  void alone(WorkerId worker, bool begins) { machine.on_worker(now, worker, RankAlone{begins}); }
  void saved(WorkerId worker, std::uint64_t iteration) {
    machine.on_worker(now, worker, RankSaved{iteration, std::chrono::seconds(1), {}});
  }
  // All of them are set up and begin step 1.
  void begin(std::uint32_t ranks) {
    for (WorkerId worker = 1; worker <= ranks; ++worker) done(worker);
    word(1, GroupAction::kStep);
    said();
  }
  void end(WorkerId worker, Outcome outcome, std::string cause = {}) {
    machine.on_worker(now, worker, WorkerEnded{outcome, std::move(cause)});
  }
  // An exception that the end of another rank may have caused.
  void echo(WorkerId worker, std::string cause) {
    machine.on_worker(now, worker, WorkerEnded{Outcome::kException, std::move(cause), true});
  }
  // All that its end asked of the disk is done.
  void conclude(std::uint32_t trial) { machine.on_concluded(now, end_of(trial)); }
  static AttemptEnded end_of(std::uint32_t trial) {
    AttemptEnded ended;
    ended.trial = {trial};
    ended.attempt = {1};
    return ended;
  }
  void exits(std::uint32_t pid, int code = 0) {
    machine.on_exit(now, pid, {false, code, "exited with code " + std::to_string(code)});
  }
  void dies(std::uint32_t pid, int signal, std::string why = {}) {
    machine.on_exit(now, pid,
                    {true, signal, "killed by signal " + std::to_string(signal), std::move(why)});
  }
};

}  // namespace tune::testing
