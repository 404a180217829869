// WorkerMachine: the actions of one rank of an attempt at its step boundaries, as a pure state
// machine. It counts steps and time, says when a result is reported, a checkpoint is written and
// the next step begins, and keeps the ranks of a group in step. It is told each happening and its
// time, and queues actions for the process around it (WorkerSession, or a simulated worker).
//
// The actions of one answer are carried out in order. The last of them says what the worker does
// until it has something to tell: write (on_saved), listen (on_command, on_silence), a step
// (on_report, on_returned), or nothing more. An action that fails ends the attempt; those after it
// are dropped. No call makes it throw.
//
// Rank 0 alone decides: ranks that each looked for a verdict at their own step boundary would
// see it at different ones, and a rank that goes on would wait in a collective for ranks that
// stopped. So all others follow rank 0's words, and rank 0 sends each before it goes on itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/worker_contract.h"

namespace tune {

// ---- Actions ------------------------------------------------------------------------------------

struct SayToAgent {
  WorkerEvent event;
};
// Make the temporary folder of this checkpoint, empty, for all ranks.
struct PrepareCheckpoint {
  std::uint64_t iteration = 0;
};
// Write this rank's part of it and flush it, then call on_saved; or take a copy that is written
// later, then call on_copied.
struct WriteCheckpoint {
  std::uint64_t iteration = 0;
};
// Write that copy beside what follows, and say this when it is on disk: before the next
// checkpoint is prepared, and before the attempt is left.
struct WriteBeside {
  RankSaved saved;
};
// Call on_command with the next command, or on_silence when none is there; with `wait` wait for it.
struct ListenToAgent {
  bool wait = false;
};
struct BeginStep {};
// The user's code is to return; last_word() is said when it has.
struct LeaveAttempt {};
// The user's code is to end with this error.
struct FailAttempt {
  std::string cause;
  bool is_of_group = false;
};
// The user's code reports though it was told to return: the process ends at once.
struct ExitWorker {};

using WorkerAction = std::variant<SayToAgent, PrepareCheckpoint, WriteCheckpoint, WriteBeside,
                                  ListenToAgent, BeginStep, LeaveAttempt, FailAttempt, ExitWorker>;

// ---- The machine --------------------------------------------------------------------------------

class WorkerMachine {
 public:
  using Time = Duration;  // of any clock that does not go back

  explicit WorkerMachine(const StartWorker& start);  // which must outlive it

  // The trainable is set up, and is still to be loaded from its checkpoint.
  void on_set_up();
  // Everything is set up and loaded.
  void on_ready();
  // A step has ended with this result. `can_save`: a checkpoint can be written until the next step.
  void on_report(Time now, Packed result, bool can_save);
  void on_saved();
  void on_copied();  // of rank 0, where the agent hears_copied
  // From here on a checkpoint can be written, though the last report could not say so.
  void allow_save() { can_save_ = true; }
  void on_command(const WorkerCommand& command);
  void on_silence(Time now);
  // A function trainable has returned: it is completed unless its outcome is known already.
  void on_returned();
  // An action threw. The attempt has failed, even if the user's code catches the exception.
  void on_failed(std::string cause, bool is_of_group);

  // Replaces the content of `actions` by the actions due now.
  void take_actions(std::vector<WorkerAction>& actions) {
    actions.clear();
    actions.swap(actions_);
  }
  // Steps that this rank has completed since the trial began.
  std::uint64_t iteration() const { return iteration_; }
  // The last word of a rank that ends without an error, sent when everything is cleared away.
  WorkerEnded last_word() const;

 private:
  bool is_refused();
  void lead(Time now, Packed result);
  void heed(const GroupStep& word);
  Reported make_report(Time now, Packed result);
  void save();
  void save_as_asked();
  void save_and_end(Outcome outcome, bool wants_save);
  RankSaved saved() const { return {iteration_, time_total_, timesteps_total_}; }
  void saved_or_not();
  void await_word();
  void end();
  void say_done();
  void fail(std::string cause);
  template <class Action>
  void act(Action action) {
    actions_.emplace_back(std::in_place_type<Action>, std::move(action));
  }
  void say(WorkerEvent event) { act(SayToAgent{std::move(event)}); }
  bool is_in_group() const { return start_.launch.ranks > 1; }
  bool leads() const { return start_.rank == 0; }

  const StartWorker& start_;
  std::uint64_t iteration_;
  std::uint64_t saved_;  // iteration of the newest checkpoint; 0: none
  Milestone until_;
  Time step_began_{};
  Duration time_total_;
  Duration time_since_restore_{};
  std::optional<double> timesteps_total_;
  bool can_save_ = false;
  bool save_was_missed_ = false;
  bool has_begun_ = false;         // a first step
  bool waits_ = false;             // for the verdict on its report
  bool is_held_ = false;           // at a step boundary, by the agent
  std::optional<Outcome> ending_;  // how the attempt ends when the checkpoint is written
  std::optional<Outcome> outcome_;
  std::optional<FailAttempt> failure_;  // the first
  std::vector<WorkerAction> actions_;
};

}  // namespace tune
