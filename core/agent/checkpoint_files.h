// The transaction that makes a checkpoint, the removal of one that was cut short, and the output of
// an attempt.
#pragma once

#include <filesystem>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/agent_contract.h"
#include "core/checkpoint_name.h"
#include "core/trial.h"

namespace tune {

// Gives the temporary folder, which every rank has written and flushed, its final name, replacing
// any folder of that name, and flushes the trial's folder. Throws Error (kIo).
// The parts of other machines of its group, which stand beside it, are put into it before.
void promote_checkpoint(const std::filesystem::path& trial_directory, const CheckpointSaved& saved,
                        const std::vector<CheckpointPart>& joins = {});
// The same; returns the error, empty when there is none.
std::string why_not_promoted(const std::filesystem::path& trial_directory,
                             const CheckpointSaved& saved,
                             const std::vector<CheckpointPart>& joins = {});
// Removes what the ranks of this node have written of it, before it has its name.
void drop_checkpoint(const std::filesystem::path& trial_directory, const CheckpointSaved& saved);

// Removes a checkpoint that no record needs any more; its name never stands for a part of it. Files
// that cannot be removed stay.
void remove_checkpoint(const std::filesystem::path& trial_directory, const CheckpointId& id);

// Removes every checkpoint of attempts up to `through`, complete or not, except those with a
// record. None of these attempts lives any more, so none of them gets a record; later attempts may
// live, also those of a driver that the caller does not know. Files that cannot be removed stay.
void remove_unrecorded(const std::filesystem::path& trial_directory,
                       const std::vector<CheckpointRecord>& records, AttemptNumber through);

// The tail that this attempt wrote to a file of output that earlier attempts have written to as
// well, as AttemptEnded tells it.
std::string own_tail(const std::filesystem::path& file, AttemptNumber attempt);

// Removes the checkpoint that this attempt was writing when it ended.
void remove_half_written(const std::filesystem::path& trial_directory, AttemptNumber attempt);

// Does to the trial's folder what the end of an attempt asks for, and completes what is told of it.
AttemptEnded concluded(const std::filesystem::path& trial_directory, const ConcludeAttempt& end);

}  // namespace tune
