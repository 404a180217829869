// The version of experiment.json, for those who read it without making a spec of it.
#pragma once

#include <cstdint>

namespace tune {

inline constexpr std::int64_t kExperimentVersion = 2;  // 1 is read as well

}  // namespace tune
