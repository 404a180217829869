// What a plugin holds, looked at from a process of its own: whatever its library does when it is
// loaded happens there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/messages.h"

namespace tune {

struct PluginProbe {
  std::string error;  // why it cannot be loaded; empty: it can
  std::vector<TrainableInfo> trainables;
};

// Loads the plugin in a child process (LibTorch: 0.3 s) and asks it. Throws Error (kProcess) when no
// child can be started. Call it while the process has one thread.
PluginProbe probe_plugin(const std::filesystem::path& plugin);

}  // namespace tune
