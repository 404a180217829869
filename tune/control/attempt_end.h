// The meaning of an attempt's end for its trial. Pure.
#pragma once

#include <cstdint>

#include "core/agent_contract.h"
#include "core/trial.h"

namespace tune {

enum class Ending : std::uint8_t {
  kCompleted,    // the trial is over
  kStopped,      // the same, by a decision
  kPaused,       // saved, to go on later
  kLost,         // to go on from its last checkpoint; nobody's fault
  kFailed,       // counted by max_failures
  kCannotPause,  // a failure too: the scheduler paused a trial that cannot save
  kReplaced,     // to go on from another trial's checkpoint, however it ended
};

// The experiment's state while the attempt ends.
enum class Leaving : std::uint8_t {
  kNo,
  kForGood,  // running trials were stopped (budget, fail_fast)
  kForNow,   // they were paused, to be resumed
};

// `is_of_node`: a node is to blame for an attempt that was lost. Whether the trial could have paused
// does not show then.
Ending ending_of(const Trial& trial, Outcome outcome, Leaving leaving, bool is_of_node = false);

}  // namespace tune
