// The folder that a sweep has left, and whether it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "process/sandbox.h"

namespace tune {

// Folders of the trials of <sandbox>/<experiment>, by name; none when it is not there yet.
std::vector<std::filesystem::path> trial_folders(const Sandbox& box, const std::string& experiment);

bool has_results(const Sandbox& box, const std::string& experiment, std::size_t at_least);

// Every trial is TERMINATED, its result.json has the iterations 1 to n once each, progress.csv says
// the same, and results.csv has the n-th as its last. n is `iterations`, or that of the table.
void check_complete(const Sandbox& box, const std::string& experiment, std::size_t trials,
                    std::optional<std::size_t> iterations = {});

// results.csv without the fields that may differ between two runs: times, hosts, pids,
// since_restore.
std::string lasting_table(const Sandbox& box, const std::string& experiment);

// The pid in the last result of a trial's result.json.
pid_t worker_pid(const Sandbox& box, const std::filesystem::path& trial_folder);

// No process, socket, temporary file or held lock is left of the sandbox's drivers.
void check_nothing_left(const Sandbox& box, const std::string& experiment);

}  // namespace tune
