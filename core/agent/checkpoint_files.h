// The agent's part in the transaction that makes a checkpoint.
#pragma once

#include <filesystem>

#include "core/messages.h"

namespace tune {

// Gives the temporary folder that every rank has written and flushed its final name, replacing what
// stands there, and flushes the trial's folder. Throws Error (kIo).
void promote_checkpoint(const std::filesystem::path& trial_directory, const CheckpointSaved& saved);

// Removes what this attempt was writing when it ended.
void remove_half_written(const std::filesystem::path& trial_directory, AttemptNumber attempt);

}  // namespace tune
