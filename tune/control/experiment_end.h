// ExperimentEnd: finds out whether the experiment is over, and ends it early. Pure.
#pragma once

#include <string>

#include "core/agent_contract.h"
#include "tune/control/control_state.h"
#include "tune/control/trial_moves.h"
#include "tune/control/trial_source.h"

namespace tune {

class ExperimentEnd {
 public:
  ExperimentEnd(ControlState& state, TrialSource& source, TrialMoves& moves)
      : state_(state), source_(source), moves_(moves) {}

  // Finds out whether the experiment is over after this event. When nothing else can run, paused
  // trials are over; when it ends early, trials that never started are over as well.
  void settle();
  // Running trials save and end, or are paused; `phase`: kEnding or kInterrupting.
  void stop_running(StopKind kind, Phase phase);
  void spend_budget();
  void interrupt();
  // For want of a node: one may join.
  void say_that_trials_wait(const std::string& why);

 private:
  bool is_stranded(bool some_wait) const;
  void wait_for_user();

  ControlState& state_;
  TrialSource& source_;
  TrialMoves& moves_;
};

}  // namespace tune
