// The version of this build, "0.9.0": a driver takes agents of the same version only.
#pragma once

#include <string_view>

namespace tune {

std::string_view build_version();

}  // namespace tune
