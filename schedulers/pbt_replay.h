// Plays a schedule that population based training has found (`tune schedule` prints it) again, on
// one trial: at each step of it the trial saves, and goes on from there with the step's values. As
// Ray Tune's PopulationBasedTrainingReplay, which reads it from a file of its own.
//
// The first step, at 0, is the configuration that the trial begins with. Later results are not
// judged: a stop rule ends the trial.
#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/scheduler_spec.h"

namespace tune {

struct ScheduleStep {
  std::uint64_t iteration = 0;  // done with the values before
  Config config;                // whole
};

struct PbtReplayOptions {
  std::vector<ScheduleStep> schedule;  // in order of iteration, each later than the one before
};

// Throws Error (kBadInput) naming the step that does not fit.
SchedulerSpec pbt_replay(PbtReplayOptions options);
SchedulerSpec pbt_replay_from_config(const Config& parameters);

}  // namespace tune
