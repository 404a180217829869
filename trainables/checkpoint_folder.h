// A worker's part in the transaction that makes a checkpoint: write into a temporary folder, flush
// it to the disk. The agent renames it once every rank has done so.
#pragma once

#include <filesystem>

namespace tune {

// An empty folder of that name, whatever was there before. Throws
// std::filesystem::filesystem_error.
void make_fresh_folder(const std::filesystem::path& folder);

// Returns when every file and folder in it, and itself, is on the disk. Throws Error (kIo).
void flush_checkpoint(const std::filesystem::path& folder);

}  // namespace tune
