// TrialMoves: how a trial goes from one state to the next, with all who are to hear of it:
// TrialBook has its state, and scheduler, searcher and health of places take part in the change.
// Pure.
//
// A trial that a user pauses leaves its scheduler as one that failed does, and takes part anew when
// it goes on. The simpler way is to keep it a participant that says nothing. It fails with all
// schedulers that wait for others: synchronous HyperBand and PBT would halve no bracket, and let no
// generation go on, until a user comes back; a held trial with good values would be a donor, and
// count as one that is to come. Schedulers know how to do without a trial that failed, and how to
// take it in again (schedulers/trial_scheduler.h).
#pragma once

#include <optional>

#include "core/agent_contract.h"
#include "core/trial.h"
#include "schedulers/trial_scheduler.h"
#include "tune/control/control_state.h"

namespace tune {

class TrialMoves {
 public:
  explicit TrialMoves(ControlState& state) : state_(state) {}

  // An attempt ended too early: the next goes on from the last checkpoint, unless the trial's
  // verdict is carried out already.
  void wait_again(Trial& trial);
  void pause(Trial& trial);
  // By a user, until let_go.
  void hold(Trial& trial);
  void let_go(Trial& trial);
  // One that the scheduler has paused, and perhaps with the state and values of another.
  void resume(Trial& trial);
  void finish(Trial& trial, TrialEnd end);
  // One that is over: for scheduler and retention alike it takes part anew, from where it stood.
  void revive(Trial& trial);
  // A new driver: trials that were interrupted go on, and those in error if it says so.
  void take_up(bool retry_errored);
  // The answer to the agent of a trial that is to leave its state for another one's; `waiting`: it
  // waits for an answer.
  std::optional<Command> replace(Trial& trial, const ResumedAs& as, bool waiting);

 private:
  bool take_over(Trial& trial, const ResumedAs& as);
  void say_once_that_nothing_is_replaced();

  ControlState& state_;
};

}  // namespace tune
