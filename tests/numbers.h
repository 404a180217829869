// Doubles that many tests need.
#pragma once

#include <limits>

namespace tune::testing {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace tune::testing
