#include <doctest/doctest.h>

#include "rank_variables.h"

#include "core/agent/worker_start.h"

using namespace tune;

namespace {

const NodeFacts kNode{
    {{"0", "", 0}, {"GPU-b", "", 0}, {"2", "", 0}, {"3", "", 0}}, "/run/once", 42};

SetupExperiment experiment() {
  SetupExperiment setup;
  setup.experiment_id = "0a1b2";
  setup.experiment_directory = "/results/x";
  return setup;
}

Launch launch_of(std::uint32_t ranks, std::int64_t cpu_units, std::vector<std::uint32_t> gpus) {
  Launch launch;
  launch.trial = {3};
  launch.attempt = {1};
  launch.ranks = ranks;
  launch.cpu_units = cpu_units;
  launch.gpus = std::move(gpus);
  return launch;
}

}  // namespace

TEST_CASE("a rank sees every GPU of its trial on the node and knows which is its own") {
  const struct {
    std::uint32_t ranks;
    std::vector<std::uint32_t> gpus;
    std::uint32_t rank;
    const char* visible;
    const char* own;
  } cases[] = {
      {1, {}, 0, "", "0"},  // none: CUDA is hidden
      {1, {1}, 0, "GPU-b", "0"},
      {2, {0, 1}, 1, "0,GPU-b", "1"},
      {2, {0, 1, 2, 3}, 1, "0,GPU-b,2,3", "2"},  // two each
      {2, {2, 2}, 1, "2", "0"},                  // half a GPU each, the same one
      {4, {0, 0, 1, 1}, 2, "0,GPU-b", "1"},
  };
  for (const auto& one : cases) {
    const auto start = worker_start(experiment(), launch_of(one.ranks, kUnit * one.ranks, one.gpus),
                                    one.rank, kNode);
    CHECK(start.environment.at("CUDA_VISIBLE_DEVICES") == one.visible);
    CHECK(start.environment.at("TUNE_DEVICE_INDEX") == one.own);
  }
}

TEST_CASE("rotated, a rank's own GPU comes first among those of its trial") {
  SetupExperiment rotated = experiment();
  rotated.gpu_visibility = GpuVisibility::kRotated;
  const struct {
    std::uint32_t ranks;
    std::vector<std::uint32_t> gpus;
    std::uint32_t rank;
    const char* visible;
  } cases[] = {
      {1, {}, 0, ""},
      {2, {0, 1}, 0, "0,GPU-b"},
      {2, {0, 1}, 1, "GPU-b,0"},
      {2, {0, 1, 2, 3}, 1, "2,3,0,GPU-b"},  // two each
      {2, {2, 2}, 1, "2"},                  // half a GPU each, the same one
      {4, {0, 0, 1, 1}, 2, "GPU-b,0"},
  };
  for (const auto& one : cases) {
    const auto start =
        worker_start(rotated, launch_of(one.ranks, kUnit * one.ranks, one.gpus), one.rank, kNode);
    CHECK(start.environment.at("CUDA_VISIBLE_DEVICES") == one.visible);
    CHECK(start.environment.at("TUNE_DEVICE_INDEX") == "0");
    CHECK(start.environment.at("LOCAL_RANK") == std::to_string(one.rank));
  }
}

TEST_CASE(
    "a rank of a trial with MIG instances sees its own share alone, of which CUDA shows one") {
  const NodeFacts split{
      {{"0", "", 0}, {"MIG-a", "", 0}, {"MIG-b", "", 0}, {"MIG-c", "", 0}, {"MIG-d", "", 0}},
      "/run/once",
      42};
  const struct {
    std::uint32_t ranks;
    std::vector<std::uint32_t> gpus;
    std::uint32_t rank;
    const char* visible;
  } cases[] = {
      {1, {2}, 0, "MIG-b"},
      {2, {1, 3}, 0, "MIG-a"},
      {2, {1, 3}, 1, "MIG-c"},
      {2, {1, 2, 3, 4}, 1, "MIG-c,MIG-d"},  // for programs that it may start
      {2, {4, 4}, 1, "MIG-d"},
      {4, {1, 1, 2, 2}, 2, "MIG-b"},
      {2, {0, 1}, 0, "0"},
      {2, {0, 1}, 1, "MIG-a"},
  };
  for (const GpuVisibility visibility : {GpuVisibility::kTrial, GpuVisibility::kRotated}) {
    SetupExperiment setup = experiment();
    setup.gpu_visibility = visibility;
    for (const auto& one : cases) {
      const auto start =
          worker_start(setup, launch_of(one.ranks, kUnit * one.ranks, one.gpus), one.rank, split);
      CHECK(start.environment.at("CUDA_VISIBLE_DEVICES") == one.visible);
      CHECK(start.environment.at("TUNE_DEVICE_INDEX") == "0");
    }
  }
}

TEST_CASE("ranks are told their part of a GPU, unless the user says another") {
  const auto part = [](std::uint32_t ranks, std::int64_t gpu_units, const SetupExperiment& setup) {
    Launch launch = launch_of(ranks, kUnit * ranks, {0});
    launch.gpu_units = gpu_units;
    const auto start = worker_start(setup, launch, 0, kNode);
    const auto found = start.environment.find("TUNE_GPU_PART");
    return found == start.environment.end() ? "as the user says" : found->second;
  };
  CHECK(part(1, kUnit, experiment()) == "1");
  CHECK(part(1, 2 * kUnit, experiment()) == "1");
  CHECK(part(1, kUnit / 4, experiment()) == "0.25");
  CHECK(part(2, kUnit / 2, experiment()) == "0.25");
  CHECK(part(1, 0, experiment()) == "1");  // of a driver that does not say it
  SetupExperiment own = experiment();
  own.environment = {{"TUNE_GPU_PART", "1"}};
  CHECK(part(1, kUnit / 4, own) == "as the user says");
  const auto without = worker_start(experiment(), launch_of(1, kUnit, {}), 0, kNode);
  CHECK_FALSE(without.environment.contains("TUNE_GPU_PART"));
}

TEST_CASE("GPUs are numbered as NVML does, unless the user says otherwise") {
  const auto order = [](const SetupExperiment& setup) {
    const auto start = worker_start(setup, launch_of(1, kUnit, {0}), 0, kNode);
    const auto found = start.environment.find("CUDA_DEVICE_ORDER");
    return found == start.environment.end() ? "as the user says" : found->second;
  };
  CHECK(order(experiment()) == "PCI_BUS_ID");
  SetupExperiment own = experiment();
  own.environment = {{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}};
  CHECK(order(own) == "as the user says");
}

TEST_CASE("ranks are told how long to wait for each other") {
  SetupExperiment setup = experiment();
  setup.group_timeout = from_seconds(2.5);
  const auto start = worker_start(setup, launch_of(2, 2 * kUnit, {}), 1, kNode);
  CHECK(start.environment.at("TUNE_GROUP_TIMEOUT_S") == "2.5");
  CHECK(std::stod(start.environment.at("TUNE_ALONE_TIMEOUT_S")) > 1e7);  // any time
  setup.alone_timeout = from_seconds(700);
  CHECK(worker_start(setup, launch_of(2, 2 * kUnit, {}), 1, kNode)
            .environment.at("TUNE_ALONE_TIMEOUT_S") == "700");
}

TEST_CASE("CPUs are shared out as threads, at least one, unless the user says otherwise") {
  const auto threads = [](std::uint32_t ranks, std::int64_t units) {
    return worker_start(experiment(), launch_of(ranks, units, {}), 0, kNode)
        .environment.at("OMP_NUM_THREADS");
  };
  CHECK(threads(1, 4 * kUnit) == "4");
  CHECK(threads(2, 5 * kUnit) == "2");  // floor(5 / 2)
  CHECK(threads(1, kUnit / 2) == "1");
  SetupExperiment own = experiment();
  own.environment = {{"OMP_NUM_THREADS", "7"}};
  const auto start = worker_start(own, launch_of(1, kUnit, {}), 0, kNode);
  CHECK_FALSE(start.environment.contains("OMP_NUM_THREADS"));
  CHECK(start.environment.at("MKL_NUM_THREADS") == "1");
}

TEST_CASE("paths, rank and agent are filled in") {
  const auto start = worker_start(experiment(), launch_of(2, 2 * kUnit, {}), 1, kNode);
  CHECK(start.trial_id == "0a1b2_00003");
  CHECK(start.trial_directory == "/results/x/0a1b2_00003");
  CHECK(start.once_directory == "/run/once");
  CHECK(start.agent_pid == 42);
  // The rest is said where the port is known.
  for (const auto& [name, value] : testing::rank_variables(1, 2)) {
    CAPTURE(name);
    if (name.starts_with("MASTER_")) continue;
    REQUIRE(start.environment.contains(name));
    if (!value.empty()) CHECK(start.environment.at(name) == value);
  }
}

TEST_CASE("a trial that goes on from another one's checkpoint is told its folder") {
  Launch launch = launch_of(1, kUnit, {});
  launch.restore_iteration = 8;
  CHECK(worker_start(experiment(), launch, 0, kNode).restore_folder.empty());
  launch.origin = CheckpointOrigin{{5}, 9, {2}};
  const auto start = worker_start(experiment(), launch, 0, kNode);
  CHECK(start.restore_folder == "/results/x/0a1b2_00005/checkpoint_000009-a2");
  CHECK(start.trial_directory == "/results/x/0a1b2_00003");
  CHECK(start.launch.restore_iteration == 8);
}
