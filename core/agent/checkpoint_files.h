// The transaction that makes a checkpoint, and what is left of one that was cut short.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/agent_contract.h"
#include "core/trial.h"

namespace tune {

// Gives the temporary folder that every rank has written and flushed its final name, replacing what
// stands there, and flushes the trial's folder. Throws Error (kIo).
void promote_checkpoint(const std::filesystem::path& trial_directory, const CheckpointSaved& saved);

// Removes one that no record needs any more; at no moment a part of it has its name. What cannot be
// removed stays.
void remove_checkpoint(const std::filesystem::path& trial_directory, std::uint64_t iteration);

// While no attempt of the trial lives: removes every checkpoint, whole or half-written, but those
// with a record. What cannot be removed stays.
void remove_unrecorded(const std::filesystem::path& trial_directory,
                       const std::vector<CheckpointRecord>& records);

// Removes what this attempt was writing when it ended.
void remove_half_written(const std::filesystem::path& trial_directory, AttemptNumber attempt);

}  // namespace tune
