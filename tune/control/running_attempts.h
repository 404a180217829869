// RunningAttempts: the ends of attempts, and the resources that they give back. Pure.
//
// An attempt may run on several nodes. One of them leads, and the controller speaks with that one;
// it holds the resources of each until the ranks there are gone. An attempt is over when it is over
// on every node. Simpler ways fail: with the lead's last word, a node that the lead has lost, and
// that is there, would get another trial while its ranks still run; without the lead, nobody would
// say that the others are to end.
#pragma once

#include <set>
#include <string>

#include "core/agent_contract.h"
#include "core/trial.h"
#include "tune/control/attempt_end.h"
#include "tune/control/control_state.h"
#include "tune/control/experiment_end.h"
#include "tune/control/place_evidence.h"
#include "tune/control/trial_moves.h"

namespace tune {

class RunningAttempts {
 public:
  RunningAttempts(ControlState& state, TrialMoves& moves, PlaceEvidence& evidence,
                  ExperimentEnd& end)
      : state_(state), moves_(moves), evidence_(evidence), end_(end) {}

  // One node's part of a group may be over before the others'. False: no such attempt runs there.
  bool ended(AgentNumber agent, const AttemptEnded& ended);
  // An attempt's place is free before it has ended; false: it is not. Of the node that leads, or of
  // another one, or of the only one. The trial goes on nowhere before its end is told. Each such
  // attempt keeps a checkpoint on the node: one above the limit keeps its place as well, so that a
  // store that is away fills no disk.
  bool freed(AgentNumber agent, const PlaceFree& free);
  // Ends attempts whose processes are gone with their agents, or are nobody's any more.
  void lose_all(const std::set<AgentNumber>& of, const std::string& cause);
  // These nodes are gone, or what the trial had there is.
  void lose_parts(Trial& trial, const std::set<AgentNumber>& of, const std::string& cause);

 private:
  bool has_freed_most(AgentNumber agent) const;
  void part_has_ended(Trial& trial, AgentNumber agent, const AttemptEnded& ended);
  void end_what_is_left(Trial& trial);
  void conclude(Trial& trial);
  void conclude(Trial& trial, Ending ending, const AttemptEnded& ended);
  void lose(Trial& trial, const std::string& cause);
  void fail(Trial& trial, const AttemptEnded& ended, bool elsewhere);

  ControlState& state_;
  TrialMoves& moves_;
  PlaceEvidence& evidence_;
  ExperimentEnd& end_;
};

}  // namespace tune
