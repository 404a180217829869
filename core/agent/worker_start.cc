#include "core/agent/worker_start.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "core/agent/relay_files.h"
#include "core/checkpoint_name.h"
#include "core/rank_environment.h"
#include "core/resources.h"

namespace tune {
namespace {

struct Devices {
  std::vector<std::string> all;  // each once, in the order of the ranks
  std::size_t own = 0;           // index of this rank's first
  std::size_t own_count = 0;

  ShownGpus shown(GpuVisibility visibility) const;
};

Devices devices_of(const Launch& launch, std::uint32_t local_rank, const NodeFacts& node) {
  Devices devices;
  const std::size_t per_rank = std::max<std::size_t>(1, launch.gpus.size() / launch.local_ranks());
  for (std::size_t i = 0; i < launch.gpus.size(); ++i) {
    if (launch.gpus[i] >= node.gpus.size()) continue;
    const std::string& device = node.gpus[launch.gpus[i]].device;
    auto place = std::ranges::find(devices.all, device);
    if (i == local_rank * per_rank) devices.own = static_cast<std::size_t>(place - devices.all.begin());
    if (i / per_rank == local_rank) ++devices.own_count;
    if (place == devices.all.end()) devices.all.push_back(device);
  }
  return devices;
}

ShownGpus Devices::shown(GpuVisibility visibility) const {
  ShownGpus shown = shown_gpus(all, own, own_count);
  if (visibility == GpuVisibility::kTrial) return shown;
  const auto first = shown.devices.begin() + static_cast<std::ptrdiff_t>(shown.own);
  std::ranges::rotate(shown.devices, first);
  shown.own = 0;
  return shown;
}

// That each rank may use of the GPU that is its own.
double part_of_gpu(const Launch& launch) {
  const std::int64_t units = launch.gpu_units / launch.ranks;
  return units <= 0 || units >= kUnit ? 1 : static_cast<double>(units) / kUnit;
}

WorkerExperiment for_worker(const SetupExperiment& experiment) {
  return {experiment.stop, experiment.checkpoint, experiment.max_trial_time,
          experiment.hang_timeout, experiment.environment};
}

WorkerLaunch for_worker(const Launch& launch) {
  WorkerLaunch start;
  start.trial = launch.trial;
  start.attempt = launch.attempt;
  start.config = launch.config;
  start.seed = launch.seed;
  start.ranks = launch.ranks;
  start.restore_iteration = launch.restore_iteration;
  start.restore_attempt = launch.restore_attempt;
  start.time_total = launch.time_total;
  start.timesteps_total = launch.timesteps_total;
  start.until = launch.until;
  return start;
}

}  // namespace

StartWorker worker_start(const SetupExperiment& experiment, const Launch& launch,
                         std::uint32_t rank, const NodeFacts& node) {
  StartWorker start;
  start.experiment = for_worker(experiment);
  start.launch = for_worker(launch);
  start.trial_id = trial_id(experiment.experiment_id, launch.trial);
  start.trial_directory = experiment.experiment_directory + "/" + start.trial_id;
  if (const auto& origin = launch.origin) {
    start.restore_folder = fmt::format("{}/{}/{}", experiment.experiment_directory,
                                       trial_id(experiment.experiment_id, origin->trial),
                                       checkpoint_name(origin->iteration, origin->attempt));
  }
  if (node.relays && launch.restore_iteration > 0) {
    const auto place =
        restored_place(experiment.experiment_id, launch.trial, launch.attempt, launch.node);
    start.restore_folder = experiment.experiment_directory + "/" + place.place;
  }
  start.once_directory = node.once_directory;
  start.rank = rank;
  start.local_rank = rank - launch.first_rank();
  start.threads = static_cast<std::uint32_t>(
      std::max<std::int64_t>(1, launch.cpu_units / kUnit / launch.ranks));
  start.agent_pid = node.agent_pid;
  start.hears_copied = true;

  const RankPlace place{.local_ranks = static_cast<int>(launch.local_ranks()),
                        .nodes = static_cast<int>(launch.nodes()),
                        .node = static_cast<int>(launch.node),
                        .threads = static_cast<int>(start.threads)};
  auto& environment = start.environment;
  const auto is_set = [&](const std::string& name) { return experiment.environment.contains(name); };
  environment = rank_environment(place, static_cast<int>(start.local_rank), is_set);
  const ShownGpus gpus = devices_of(launch, start.local_rank, node).shown(experiment.gpu_visibility);
  add_gpus(environment, gpus);
  if (gpus.devices.empty()) add_bucket_memory(environment, is_set);
  if (!gpus.devices.empty() && !experiment.environment.contains("TUNE_GPU_PART")) {
    environment["TUNE_GPU_PART"] = fmt::format("{:g}", part_of_gpu(launch));
  }
  // The node's numbers are NVML's, in the order of the bus; CUDA's own order begins with the
  // fastest GPU.
  if (!experiment.environment.contains("CUDA_DEVICE_ORDER")) {
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
  if (experiment.group_timeout > Duration::zero()) {
    environment["TUNE_GROUP_TIMEOUT_S"] = fmt::format("{:g}", seconds(experiment.group_timeout));
  }
  // No group waits for a rank as long as this.
  constexpr Duration kAnyTime = std::chrono::hours(24 * 365);
  const bool has_limit = experiment.alone_timeout > Duration::zero();
  environment["TUNE_ALONE_TIMEOUT_S"] =
      fmt::format("{:g}", seconds(has_limit ? experiment.alone_timeout : kAnyTime));
  start.gpu_devices = gpus.devices;
  return start;
}

}  // namespace tune
