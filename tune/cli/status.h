// `tune status`: the table of an experiment that runs elsewhere, or as it was left.
#pragma once

#include <filesystem>

namespace tune {

// For a live experiment: redraws until it is over or its driver is gone. Otherwise: prints it once.
// Returns the exit code. Throws Error (kBadInput) when the folder is not an experiment's.
int show_status(const std::filesystem::path& directory);

// A table of the nodes of a running experiment. Returns an exit code.
int show_nodes(const std::filesystem::path& directory);

}  // namespace tune
