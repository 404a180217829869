// The variables that every rank finds, whatever starts it: torchrun's and the number of threads.
#pragma once

#include <array>
#include <cstdlib>
#include <string>
#include <utility>

namespace tune::testing {

// With the value that local rank `rank` of `ranks` on one node finds; empty: any but none.
inline auto rank_variables(int rank, int ranks) {
  const std::string own = std::to_string(rank);
  const std::string all = std::to_string(ranks);
  return std::array<std::pair<std::string, std::string>, 17>{{
      {"RANK", own},
      {"LOCAL_RANK", own},
      {"WORLD_SIZE", all},
      {"LOCAL_WORLD_SIZE", all},
      {"GROUP_RANK", "0"},
      {"GROUP_WORLD_SIZE", "1"},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", own},
      {"ROLE_WORLD_SIZE", all},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", ""},
      {"TORCHELASTIC_RUN_ID", "none"},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"OMP_NUM_THREADS", ""},
      {"MKL_NUM_THREADS", ""},
  }};
}

// In a rank: the variables that are not as they should be; "as torchrun's" when all are.
inline std::string rank_variables_seen(int rank, int ranks) {
  std::string wrong;
  for (const auto& [name, value] : rank_variables(rank, ranks)) {
    const char* seen = std::getenv(name.c_str());
    const bool is_right = seen != nullptr && (value.empty() ? *seen != '\0' : value == seen);
    if (!is_right) wrong += name + " is " + (seen == nullptr ? "not set" : seen) + "; ";
  }
  return wrong.empty() ? "as torchrun's" : wrong;
}

}  // namespace tune::testing
