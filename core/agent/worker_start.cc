#include "core/agent/worker_start.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "core/mig.h"
#include "core/resources.h"

namespace tune {
namespace {

struct Devices {
  std::vector<std::string> all;  // each once, in the order of the ranks
  std::size_t own = 0;           // index of this rank's first
  std::size_t own_count = 0;

  // Those that the rank is shown, and which of them is its own.
  std::pair<std::vector<std::string>, std::size_t> visible(GpuVisibility visibility) const;
};

Devices devices_of(const Launch& launch, std::uint32_t rank, const NodeFacts& node) {
  Devices devices;
  const std::size_t per_rank = std::max<std::size_t>(1, launch.gpus.size() / launch.ranks);
  for (std::size_t i = 0; i < launch.gpus.size(); ++i) {
    if (launch.gpus[i] >= node.gpus.size()) continue;
    const std::string& device = node.gpus[launch.gpus[i]].device;
    auto place = std::ranges::find(devices.all, device);
    if (i == rank * per_rank) devices.own = static_cast<std::size_t>(place - devices.all.begin());
    if (i / per_rank == rank) ++devices.own_count;
    if (place == devices.all.end()) devices.all.push_back(device);
  }
  return devices;
}

std::pair<std::vector<std::string>, std::size_t> Devices::visible(GpuVisibility visibility) const {
  std::vector<std::string> seen = all;
  const auto first = seen.begin() + static_cast<std::ptrdiff_t>(own);
  if (std::ranges::any_of(all, is_mig_instance)) {
    return {{first, first + static_cast<std::ptrdiff_t>(own_count)}, 0};
  }
  if (visibility == GpuVisibility::kTrial) return {seen, own};
  std::ranges::rotate(seen, first);
  return {seen, 0};
}

}  // namespace

StartWorker worker_start(const SetupExperiment& experiment, const Launch& launch,
                         std::uint32_t rank, const NodeFacts& node) {
  StartWorker start;
  start.experiment = experiment;
  start.launch = launch;
  start.trial_id = trial_id(experiment.experiment_id, launch.trial);
  start.trial_directory = experiment.experiment_directory + "/" + start.trial_id;
  start.once_directory = node.once_directory;
  start.rank = rank;
  start.local_rank = rank;
  start.threads = static_cast<std::uint32_t>(
      std::max<std::int64_t>(1, launch.cpu_units / kUnit / launch.ranks));
  start.agent_pid = node.agent_pid;

  const auto [visible, own] = devices_of(launch, rank, node).visible(experiment.gpu_visibility);
  auto& environment = start.environment;
  environment["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(visible, ","));
  // The node's numbers are NVML's, by the bus: CUDA's own begin with the fastest GPU.
  if (!experiment.environment.contains("CUDA_DEVICE_ORDER")) {
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
  environment["TUNE_DEVICE_INDEX"] = std::to_string(own);
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(rank);
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(launch.ranks);
  environment["GROUP_RANK"] = std::to_string(0);  // one node
  if (experiment.group_timeout > Duration::zero()) {
    environment["TUNE_GROUP_TIMEOUT_S"] = fmt::format("{:g}", seconds(experiment.group_timeout));
  }
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (!experiment.environment.contains(name)) environment[name] = std::to_string(start.threads);
  }
  start.gpu_devices = visible;
  return start;
}

}  // namespace tune
