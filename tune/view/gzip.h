// gzip, as HTTP has it.
#pragma once

#include <string>
#include <string_view>

namespace tune::view {

// `level` 1 (fast) to 9 (small).
std::string gzipped(std::string_view text, int level);

}  // namespace tune::view
