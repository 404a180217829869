// A few named values as a checkpoint: one JSON file.
#pragma once

#include <filesystem>

#include "core/value.h"

namespace tune::synthetic {

void write_state(const std::filesystem::path& directory, const Value& state);  // Error (kIo)
Value read_state(const std::filesystem::path& directory);                      // Error

}  // namespace tune::synthetic
