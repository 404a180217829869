// Which process opens the libraries of CUDA, which stand-ins tell.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// A node with GPUs and a LibTorch whose CUDA part is a stand-in: else it is the one of this build,
// by links.
void give_gpus(Sandbox& box) {
  const fs::path torch = box.path() / "torch/lib";
  fs::create_directories(torch);
  for (const auto& entry : fs::directory_iterator(TUNE_TORCH_FOLDER "/lib")) {
    if (entry.path().filename() == "libtorch_cuda.so") continue;
    fs::create_symlink(entry.path(), torch / entry.path().filename());
  }
  if (fs::exists(TUNE_TORCH_FOLDER "/../nvidia")) {
    fs::create_symlink(TUNE_TORCH_FOLDER "/../nvidia", box.path() / "nvidia");
  }
  fs::create_symlink(TUNE_FAKE_TORCH_CUDA, torch / "libtorch_cuda.so");
  box.set("LD_LIBRARY_PATH",
          torch.string() + ":" + std::string(TUNE_BINARY_DIR) + "/tests/fake_nvml");
  box.set("FAKE_GPUS", "2");
  box.set("FAKE_CUDA_OPENED", box.path() / "opened");
  box.set("FAKE_CUDA_LOG", box.path() / "called");
  box.set("TUNE_CUDA_PART", TUNE_FAKE_CUDA_PART);
}

void write_sweep(const Sandbox& box, const std::string& gpus) {
  box.write("sweep.yaml", std::string("plugin: ") + TUNE_GPU_TRIALS_PLUGIN +
                              "\ntrainable: Counts\nconfig: {x: {grid_search: [1, 2, 3]}}\n"
                              "metric: steps\nstop: {training_iteration: 2}\n"
                              "resources_per_trial: {cpu: 1, gpu: " +
                              gpus + "}\n");
}

// All libraries once, by one process, which is not a worker; each worker then uses ours.
void check_opened_by_zygote(const Sandbox& box, const std::string& experiment) {
  std::set<std::string> names, pids;
  for (const std::string& line : lines_of(box.read("opened"))) {
    std::istringstream in(line);
    std::string name, pid;
    in >> name >> pid;
    CHECK(names.insert(name).second);
    pids.insert(pid);
  }
  CHECK(names ==
        std::set<std::string>{"libcudnn", "libcudnn_ops", "libtorch_cuda", "libtune_torch_cuda"});
  CHECK(pids.size() == 1);
  const std::vector<fs::path> trials = trial_folders(box, experiment);
  CHECK(trials.size() == 3);
  for (const fs::path& trial : trials) {
    CHECK_FALSE(pids.contains(std::to_string(worker_pid(box, trial))));
  }
  CHECK(box.read("called") == "loaded\nloaded\nloaded\n");
}

TEST_CASE("the zygote of a plugin opens CUDA's libraries once, before it forks the trials") {
  Sandbox box;
  give_gpus(box);
  write_sweep(box, "1");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  check_opened_by_zygote(box, "results/s");
  CHECK_FALSE(testing::has(run.err, "could not be opened"));
}

TEST_CASE("so does the zygote of a program") {
  Sandbox box;
  give_gpus(box);
  const Finished run = box.run({TUNE_GPU_TRIALS, "--name", "s"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  check_opened_by_zygote(box, "results/s");
}

TEST_CASE("a sweep without GPUs opens nothing of CUDA, also where there are some") {
  Sandbox box;
  give_gpus(box);
  write_sweep(box, "0");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(box.read("opened").empty());
  CHECK(box.read("called").empty());
}

TEST_CASE("a library that cannot be opened is a notice, and the trials go on") {
  Sandbox box;
  give_gpus(box);
  box.set("TUNE_CUDA_PART", "/no/such/library.so");
  write_sweep(box, "1");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_HAS(run.err, "libraries for the GPUs could not be opened before the trials are forked");
  CHECK_HAS(run.err, "/no/such/library.so");
  check_complete(box, "results/s", 3, 2);
}

}  // namespace
}  // namespace tune
