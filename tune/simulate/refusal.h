// Refuses an input file of a simulation.
#pragma once

#include <string>

#include "core/error.h"

namespace tune {

// Throws Error (kBadInput): "reading tasks/a.csv: line 3 has no number".
[[noreturn]] inline void refuse_file(const std::string& file, const std::string& why) {
  throw Error(ErrorCode::kBadInput, "reading " + file + ": " + why);
}

}  // namespace tune
