// Membership: nodes that join, become ready, and leave or are lost. Pure.
#pragma once

#include <string>

#include "core/agent_contract.h"
#include "core/journal_format.h"
#include "tune/control/abandoned_attempts.h"
#include "tune/control/control_state.h"
#include "tune/control/launcher.h"
#include "tune/control/running_attempts.h"

namespace tune {

class Membership {
 public:
  Membership(ControlState& state, RunningAttempts& attempts, AbandonedAttempts& abandoned,
             Launcher& launcher)
      : state_(state), attempts_(attempts), abandoned_(abandoned), launcher_(launcher) {}

  // The hello of an agent that is not known.
  void join(AgentNumber agent, const AgentHello& hello);
  void become_ready(AgentNumber agent, const ZygoteReady& ready);
  // It starts no more trials; attempts that run there go on. It may be gone as well.
  void go_out(AgentNumber agent, const NodeOut& out);
  void lose(const AgentLost& event);

 private:
  void say_what_it_lacks(const AgentHello& hello) const;
  void say_why_it_waits(AgentNumber agent, bool is_apart) const;
  void say_once_that_nothing_is_saved(const std::string& trainable);
  void exclude(AgentNumber agent, const std::string& why);
  void leave(AgentNumber agent, const std::string& cause);

  ControlState& state_;
  RunningAttempts& attempts_;
  AbandonedAttempts& abandoned_;
  Launcher& launcher_;
};

}  // namespace tune
