// Bugs that test doubles make on purpose, to show that the simulator finds them.
#pragma once

#include <array>
#include <cstdint>

namespace tune::simulator {

enum class Plant : std::uint8_t {
  kNone,
  kForgottenRelease,          // an ended attempt keeps its resources
  kLateVerdict,               // what an old attempt says is taken for the newest one's
  kAppendAfterEffect,         // commands leave before their turn is in the journal
  kLostRung,                  // a replayed result does not reach the scheduler
  kStartedTwice,              // launches of the earlier driver are carried out again
  kAcknowledgedBeforeAppend,  // events are acknowledged as they come in
  kNeededCheckpointRemoved,   // retention takes the newest checkpoint too
  kResultCountedTwice,        // a restarted logger writes on where its file ends
  kHalfCheckpointTold,        // a checkpoint is told although it could not be given its name
  kCheckpointBeforeResult,    // of one turn's events, results go last
  kOldVerdictCarriedOut,      // a verdict that comes too late is kept for the trial's next attempt
  kOldDriverHeard,            // an agent carries out what a superseded driver says
  kLast = kOldDriverHeard,
};

inline constexpr std::array kPlantNames = {
    "none",
    "forgotten-release",
    "late-verdict",
    "append-after-effect",
    "lost-rung",
    "started-twice",
    "acknowledged-before-append",
    "needed-checkpoint-removed",
    "result-counted-twice",
    "half-checkpoint-told",
    "checkpoint-before-result",
    "old-verdict-carried-out",
    "old-driver-heard",
};
inline const char* name_of(Plant plant) {
  return kPlantNames[static_cast<std::size_t>(plant)];
}

}  // namespace tune::simulator
