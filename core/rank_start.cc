#include "core/rank_start.h"

#include <utility>
#include <vector>

namespace tune {
namespace {

// In a function, as it is used before main().
std::vector<std::function<void()>>& preparations() {
  static std::vector<std::function<void()>> all;
  return all;
}

}  // namespace

bool at_rank_start(std::function<void()> prepare) {
  preparations().push_back(std::move(prepare));
  return true;
}

void begin_rank() {
  for (const auto& prepare : preparations()) prepare();
}

}  // namespace tune
