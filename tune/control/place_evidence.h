// PlaceEvidence: what attempts show of the places on which they run, told to DeviceHealth. Only
// attempts on one node do: a group over several does not tell which of them is to blame. It tells
// which of its nodes did not reach each other. Pure.
#pragma once

#include "core/trial.h"
#include "tune/control/attempt_end.h"
#include "tune/control/control_state.h"

namespace tune {

class PlaceEvidence {
 public:
  explicit PlaceEvidence(ControlState& state) : state_(state) {}

  // Before a result is taken. True: it is the attempt's first, and shows something.
  bool reports(const Trial& trial);
  // For an attempt that ended well, or without any fault.
  void ended(const Trial& trial, Ending ending);
  // One that failed. True: the place may be to blame, and the trial is tried on another one.
  bool tries_elsewhere(const Trial& trial);

  // Of a group over several nodes, as any of them says. Two that have not met twice are kept apart:
  // the later one takes no part in groups any more, as any port between them must be open.
  void did_not_meet(const Trial& trial, const AttemptEnded& ended);

 private:
  void tell(const DeviceHealth::Findings& findings);

  ControlState& state_;
};

}  // namespace tune
