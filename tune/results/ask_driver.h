// Asking the driver that runs an experiment, from another process of the same user and host.
#pragma once

#include <filesystem>
#include <string>

#include "core/value.h"

namespace tune {

// Sends the request (tune/drive/requests.h) and waits for the answer, which is for the user. Throws
// Error (kBadInput), saying what to do, when no driver of this host runs the experiment, when it
// belongs to another user, and when the driver refuses; Error (kProcess) when it does not answer.
std::string ask_driver(const std::filesystem::path& directory, const Value& request);

// The name of the one who asks: $USER, else that of the process's user. Not for several threads.
std::string user_name();

}  // namespace tune
