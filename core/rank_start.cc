#include "core/rank_start.h"

#include <exception>
#include <utility>
#include <vector>

namespace tune {
namespace {

// Constants at first, as static initialisers fill them before main().
constinit std::vector<std::function<void()>> preparations;
constinit std::vector<std::function<std::string()>> zygote_preparations;

}  // namespace

bool at_rank_start(std::function<void()> prepare) {
  preparations.push_back(std::move(prepare));
  return true;
}

void begin_rank() {
  for (const auto& prepare : preparations) prepare();
}

bool at_gpu_zygote_start(std::function<std::string()> prepare) {
  zygote_preparations.push_back(std::move(prepare));
  return true;
}

std::string prepare_gpu_zygote() {
  std::string notices;
  for (const auto& prepare : zygote_preparations) {
    std::string notice;
    try {
      notice = prepare();
    } catch (const std::exception& error) {
      notice = error.what();
    }
    if (!notice.empty()) notices += (notices.empty() ? "" : "; ") + notice;
  }
  return notices;
}

}  // namespace tune
