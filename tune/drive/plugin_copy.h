// The copy of a plugin in its experiment's folder, for machines that do not have the plugin.
#pragma once

#include <filesystem>

#include "core/agent_contract.h"

namespace tune {

// Copies the plugin into the experiment's folder, in the place of another one, and says so in the
// setup. A plugin that cannot be read is left to those who load it. Throws Error (kIo).
void copy_plugin(const std::filesystem::path& experiment, JoinedSetup& setup);

}  // namespace tune
