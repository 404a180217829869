// Fingerprints of files.
#pragma once

#include <filesystem>
#include <string>

namespace tune {

// A short text that changes with the content of the file; empty when it cannot be read.
std::string fingerprint(const std::filesystem::path& file);

}  // namespace tune
