// Reports: what attempts say while they run, that they have begun, their results and checkpoints.
// Pure.
#pragma once

#include "core/agent_contract.h"
#include "core/trial.h"
#include "tune/control/control_state.h"
#include "tune/control/place_evidence.h"
#include "tune/control/trial_moves.h"
#include "tune/control/trial_source.h"

namespace tune {

class Reports {
 public:
  Reports(ControlState& state, TrialSource& source, TrialMoves& moves, PlaceEvidence& evidence)
      : state_(state), source_(source), moves_(moves), evidence_(evidence) {}

  void began(AgentNumber agent, const AttemptStarted& started);
  // True: a place may be open again; or a paused trial may go on after the decision on this one.
  bool reported(AgentNumber agent, const Reported& report);
  void saved(AgentNumber agent, const CheckpointSaved& saved);

 private:
  bool others_wait() const;
  void expect_metric(const Reported& report);

  ControlState& state_;
  TrialSource& source_;
  TrialMoves& moves_;
  PlaceEvidence& evidence_;
};

}  // namespace tune
