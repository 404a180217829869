// ReturningNodes: agents that outlive their driver, and what the next one makes of them. Pure.
//
// The trials there go on, so the next driver must know of it exactly what this one knew. The
// journal tells the attempts; the machine tells again what no driver has acknowledged, then says
// hello with what runs. Of that
// - an attempt that both know goes on; if it waits for a verdict that the driver before this one
//   had made and perhaps not told, it is told now;
// - one that only the journal knows was launched by a command that never arrived: its trial waits
//   again;
// - one that only the machine knows (of a trial that was given up, or whose launch went with the
//   end of the journal) is ended, and the machine gets no trial until it has.
// Simpler ways fail: to take the machine's word alone promises its GPUs twice when it is heard
// late, and to say every verdict again lets a trial that has gone on to its next milestone run past
// it.
#pragma once

#include <set>

#include "core/agent_contract.h"
#include "core/journal_format.h"
#include "core/trial.h"
#include "tune/control/abandoned_attempts.h"
#include "tune/control/control_state.h"
#include "tune/control/launcher.h"
#include "tune/control/running_attempts.h"

namespace tune {

class ReturningNodes {
 public:
  ReturningNodes(ControlState& state, RunningAttempts& attempts, AbandonedAttempts& abandoned,
                 Launcher& launcher)
      : state_(state), attempts_(attempts), abandoned_(abandoned), launcher_(launcher) {}

  // A driver begins: some of the machines are waited for, the others have left.
  void await(const DriverStarted& driver);
  // Before each event of an agent. One may be missing between the newest that is known of it and
  // this one: what runs there is given up.
  void check_words(const FromAgent& event);
  // The hello of an agent that is known. It greets each driver once. A greeting to a driver before
  // this one that comes late says nothing: trials have gone on since.
  void come_back(AgentNumber agent, const AgentHello& hello);

 private:
  std::set<AgentNumber> kept_by(const DriverStarted& driver) const;
  void say_who_is_kept(const std::set<AgentNumber>& kept) const;
  void say_again(AgentNumber agent, const LiveAttempt& live);
  StopAttempt wished(const Trial& trial) const;

  ControlState& state_;
  RunningAttempts& attempts_;
  AbandonedAttempts& abandoned_;
  Launcher& launcher_;
};

}  // namespace tune
