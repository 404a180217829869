// Schedule: the configurations that a trial's model was trained with, one after the other, under a
// scheduler that lets trials go on from others' checkpoints. Read from the experiment's folder.
//
// The last trial's replacements alone do not tell: its model came from another trial, which had it
// from a third. So the way is followed back through the checkpoints, and counted in steps of the
// model: at a trial's own iteration 20 it may have done 24 of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/value.h"

namespace tune {

struct ScheduleEntry {
  std::uint64_t iteration = 0;        // steps of the model before it
  Config config;                      // whole
  std::string trial;                  // the trial that trained with it,
  std::uint64_t trial_iteration = 0;  // from this iteration of its own on
  std::string reason;                 // of the scheduler; empty for the first
};

// The schedule of one trial's newest state: one entry when it was never replaced. Throws Error
// (kIo) when events.jsonl or params.json cannot be read, Error (kBadInput) when they do not fit
// together.
std::vector<ScheduleEntry> read_schedule(const std::filesystem::path& experiment,
                                         const std::string& trial);

// The configuration that the trial's result of this iteration came of. Throws as read_schedule.
Config config_at(const std::filesystem::path& experiment, const std::string& trial,
                 std::uint64_t iteration);

}  // namespace tune
