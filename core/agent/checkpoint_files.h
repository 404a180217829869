// The transaction that makes a checkpoint, and what is left of one that was cut short.
#pragma once

#include <filesystem>
#include <vector>

#include "core/agent_contract.h"
#include "core/checkpoint_name.h"
#include "core/trial.h"

namespace tune {

// Gives the temporary folder that every rank has written and flushed its final name, replacing what
// stands there, and flushes the trial's folder. Throws Error (kIo).
void promote_checkpoint(const std::filesystem::path& trial_directory, const CheckpointSaved& saved);

// Removes one that no record needs any more; at no moment a part of it has its name. What cannot be
// removed stays.
void remove_checkpoint(const std::filesystem::path& trial_directory, const CheckpointId& id);

// Removes every checkpoint of attempts up to `through`, whole or half-written, but those with a
// record. None of these attempts lives any more, so that none of them gets a record; later attempts
// may live, also those of a driver of which the caller knows nothing. What cannot be removed stays.
void remove_unrecorded(const std::filesystem::path& trial_directory,
                       const std::vector<CheckpointRecord>& records, AttemptNumber through);

// Removes what this attempt was writing when it ended.
void remove_half_written(const std::filesystem::path& trial_directory, AttemptNumber attempt);

}  // namespace tune
