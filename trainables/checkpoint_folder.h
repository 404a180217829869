// A worker's part in the transaction that makes a checkpoint: write into a temporary folder, flush
// it to the disk. The agent renames it once every rank has done so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/worker_contract.h"

namespace tune {

// The checkpoint that this attempt goes on from; nothing when the trial starts afresh.
std::optional<std::filesystem::path> checkpoint_to_load(const StartWorker& start);
// The same, but an AttemptFailure when its folder is not there.
std::optional<std::filesystem::path> existing_checkpoint(const StartWorker& start);
// The folder in which this attempt writes the checkpoint of an iteration.
std::filesystem::path checkpoint_to_write(const StartWorker& start, std::uint64_t iteration);

// An empty folder of that name, whatever was there before. Throws
// std::filesystem::filesystem_error.
void make_fresh_folder(const std::filesystem::path& folder);

// Returns when every file and folder in it, and itself, is on the disk. Throws Error (kIo).
void flush_checkpoint(const std::filesystem::path& folder);

}  // namespace tune
