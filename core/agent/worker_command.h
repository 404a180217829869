// The program that loads a plugin, or knows a command, and becomes the zygote of its workers.
#pragma once

#include <string>
#include <vector>

#include "core/command_spec.h"

namespace tune {

// The zygote's argv for a plugin: tune-worker beside this program, or $TUNE_WORKER. "{control}" in
// it stands for the number of the control socket. Throws Error (kProcess) when the program is
// missing.
std::vector<std::string> worker_command(const std::string& plugin);
// The same for trials that are programs.
std::vector<std::string> worker_command(const CommandSettings& settings);
// The program alone. Throws as these do.
std::string worker_program();

}  // namespace tune
