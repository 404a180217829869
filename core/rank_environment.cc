#include "core/rank_environment.h"

#include <algorithm>

#include <fmt/format.h>

namespace tune {

Environment rank_environment(const RankPlace& place, int local_rank,
                             const UserHasSet& user_has_set) {
  const std::string rank = std::to_string(place.first_rank() + local_rank);
  const std::string ranks = std::to_string(place.local_ranks * place.nodes);
  Environment environment = {
      {"RANK", rank},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"WORLD_SIZE", ranks},
      {"LOCAL_WORLD_SIZE", std::to_string(place.local_ranks)},
      {"GROUP_RANK", std::to_string(place.node)},
      {"GROUP_WORLD_SIZE", std::to_string(place.nodes)},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", rank},
      {"ROLE_WORLD_SIZE", ranks},
      // Programs see by these that torchrun started them. No agent holds a store for them: rank 0
      // listens itself.
      {"TORCHELASTIC_RUN_ID", "none"},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TUNE_DEVICE_INDEX", std::to_string(local_rank)},  // a trial may be what starts ranks
  };
  if (place.master_port != 0) add_rendezvous(environment, place.master_address, place.master_port);
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (!user_has_set(name)) environment[name] = std::to_string(place.threads);
  }
  return environment;
}

void add_bucket_memory(Environment& environment, const UserHasSet& user_has_set) {
  constexpr const char* kVariable = "DDP_DISABLE_COMM_MEM";
  if (!user_has_set(kVariable)) environment[kVariable] = "0";
}

void add_rendezvous(Environment& environment, const std::string& address, int port) {
  environment["MASTER_ADDR"] = address;
  environment["MASTER_PORT"] = std::to_string(port);
}

ShownGpus shown_gpus(std::vector<std::string> devices, std::size_t own, std::size_t own_count) {
  if (std::ranges::none_of(devices, is_mig_instance)) return {std::move(devices), own};
  const std::size_t first = std::min(own, devices.size());
  const std::size_t count = std::min(own_count, devices.size() - first);
  const auto begin = devices.begin() + static_cast<std::ptrdiff_t>(first);
  return {{begin, begin + static_cast<std::ptrdiff_t>(count)}, 0};
}

void add_gpus(Environment& environment, const ShownGpus& gpus) {
  environment["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(gpus.devices, ","));
  environment["TUNE_DEVICE_INDEX"] = std::to_string(gpus.own);
}

}  // namespace tune
