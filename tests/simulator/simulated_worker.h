// One worker process: the real WorkerMachine in virtual time, with a socket that delivers whole
// messages in order, the simulated disk, and a trainable that fails where the scenario says so.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/agent/agent_machine.h"
#include "simulator/learning_curve.h"
#include "simulator/world.h"
#include "trainables/worker_machine.h"

namespace tune::simulator {

// The fault of an attempt, drawn for (trial, attempt) whatever the order of events.
struct AttemptFault {
  enum class Kind : std::uint8_t {
    kNone,
    kThrowsInSetup,
    kThrowsInStep,
    kCrashes,
    kExits,
    kHangs,
    kThrowsInSave,
    kDiesInSave,
    kThrowsInLoad,
    kGarbles,        // writes what is not a message, and goes on
    kSpeaksFalsely,  // a message that is not its to send, and goes on
    kHangsAlone,     // says that it works alone, and nothing more; in a group only
    kWorksAlone,     // for longer than others wait for a rank that is late; no failure
    kSavesSlowly,    // the same
    kLast = kSavesSlowly,
  };
  Kind kind = Kind::kNone;
  std::uint32_t rank = 0;
  std::uint64_t iteration = 1;  // at the first step or save that is not before it
  bool ignores_term = false;
};
AttemptFault draw_fault(const Scenario& scenario, const WorkerLaunch& launch);

// Describes a message to a running attempt, with its attempt_key; nothing: `command` is not a
// verdict.
template <class AnyCommand>
std::optional<std::pair<std::uint64_t, std::string>> verdict_of(const AnyCommand& command) {
  const auto told = [](const auto& verdict) {
    return std::pair(attempt_key(verdict.trial, verdict.attempt), encoded(verdict));
  };
  if (const auto* go = std::get_if<Continue>(&command)) return told(*go);
  if (const auto* stop = std::get_if<StopAttempt>(&command)) return told(*stop);
  return std::nullopt;
}

class SimulatedWorker {
 public:
  struct Agent {                                           // what a worker does to it
    std::function<void(std::optional<WorkerEvent>)> hear;  // nothing: what is not a message
    std::function<void(ProcessEnd)> see_end;
    std::size_t node = 0;
    Where where = kExperimentFolder;  // it writes checkpoints
  };
  SimulatedWorker(World& world, std::uint32_t pid, Agent agent);

  void hear(WorkerCommand command);
  void signal(int signal);
  void die() { end({true, 9, "killed by signal 9 (SIGKILL)"}); }
  void notice_loss();  // of another node of its group, in a collective

  bool exists() const { return !ended_; }
  // Null until the worker has its StartWorker.
  const StartWorker* start() const { return start_ ? &*start_ : nullptr; }
  std::uint32_t pid() const { return pid_; }

 private:
  void on(const StartWorker& start);
  void check_verdict(const WorkerCommand& command) const;
  void load();
  void begin();
  void step();
  void listen();
  void perform();
  void act(SayToAgent& action);
  void act(const PrepareCheckpoint& action);
  void act(const WriteCheckpoint& action);
  void act(const WriteBeside&) {}  // only after on_copied
  void act(const ListenToAgent& action);
  void act(const BeginStep&) { step(); }
  void act(const LeaveAttempt&);
  void act(const FailAttempt& action) { throw_exception(action.cause); }
  void act(const ExitWorker&) { end({false, 0, "exited with code 0"}); }
  void throw_exception(const std::string& cause, bool is_of_group = false);
  void end(ProcessEnd how);
  bool fails(AttemptFault::Kind kind) const;
  bool is_at_bad_place() const;
  bool meets_fault_in_step();
  bool works_alone();
  void finish_step();
  void hang();
  void speak_nonsense();
  WorkerEvent false_word() const;
  std::uint32_t group_node() const;  // that it is on
  void say(WorkerEvent event) { agent_.hear(std::move(event)); }
  void later(Time delay, std::function<void()> next);

  World& world_;
  std::uint32_t pid_;
  Agent agent_;
  Life life_ = new_life();
  bool ended_ = false;
  bool ignores_term_ = false;
  std::optional<StartWorker> start_;
  AttemptFault fault_;
  bool has_spoken_nonsense_ = false;
  bool was_alone_ = false;
  std::optional<LearningCurve> trainable_;
  std::optional<WorkerMachine> machine_;
  std::vector<WorkerAction> actions_;
  std::deque<WorkerCommand> commands_;    // in the socket
  std::optional<ListenToAgent> listens_;  // to them
};

}  // namespace tune::simulator
