// The page's files, embedded when the program is built (embed.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace tune::view {

struct Asset {
  std::string_view name;  // "app.js"
  std::string_view bytes;
};

const std::vector<Asset>& assets();

}  // namespace tune::view
