#include "tune/search/learning.h"

#include <algorithm>
#include <array>

namespace tune {

bool learns_from_results(const std::string& searcher) {
  constexpr std::array kOthers = {"basic_variant", "random", "grid", "halton"};
  return std::ranges::find(kOthers, searcher) == kOthers.end();
}

}  // namespace tune
