// AbandonedAttempts: attempts that were given up and may still run, on machines that were lost or
// have come back with what nobody knows. Pure.
#pragma once

#include <vector>

#include "core/agent_contract.h"
#include "core/trial.h"
#include "tune/control/control_state.h"

namespace tune {

class AbandonedAttempts {
 public:
  explicit AbandonedAttempts(ControlState& state) : state_(state) {}

  // All that run there.
  void abandon(AgentNumber agent);
  // A machine has come with these: it gets no trial until they have ended.
  void await_ends(AgentNumber agent, std::vector<LiveAttempt> unknown);
  // True: with this one, all that was awaited of a machine that is there; it takes trials again.
  bool ended(AgentNumber agent, const AttemptEnded& ended);
  // The machine is gone. It may have saved after it was given up: that stands in no record.
  void settle(AgentNumber agent);
  void settle_all();

 private:
  void settle(const LiveAttempt& one);

  ControlState& state_;
};

}  // namespace tune
