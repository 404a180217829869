// The numbers of a result that other tools draw as curves. Pure.
#pragma once

#include <string_view>

namespace tune {

inline constexpr std::string_view kTimestampField = "timestamp";  // unix seconds

// All that the user reported, and of the fields that are added to every result the times.
bool makes_a_curve(std::string_view path);

}  // namespace tune
