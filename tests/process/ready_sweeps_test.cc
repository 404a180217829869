// The sweeps of config/, as a user who copies one of them finds them.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"
#include "process/sweep.h"
#include "skip.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Relative to the sweep; empty: it has none.
std::string plugin_of(const Sandbox& box, const fs::path& sweep) {
  for (const std::string& line : lines_of(box.read(sweep))) {
    constexpr std::string_view kKey = "plugin: ";
    if (line.starts_with(kKey)) return line.substr(kKey.size(), line.find(".so") + 3 - kKey.size());
  }
  return {};
}

TEST_CASE("every sweep of config/ is one that tune validate finds nothing wrong with") {
  if (!fs::exists(TUNE_SOURCE_DIR "/build/lib")) {
    return testing::skip("there is no build/lib, of which the sweeps of config/ name plugins");
  }
  const Sandbox box;
  int checked = 0;
  for (const auto& file : fs::directory_iterator(TUNE_SOURCE_DIR "/config")) {
    const fs::path sweep = file.path();
    if (sweep.extension() != ".yaml") continue;
    CAPTURE(sweep);
    const std::string plugin = plugin_of(box, sweep);
    const bool is_built = plugin.empty() || fs::exists(sweep.parent_path() / plugin);
    if (!is_built) continue;  // without LibTorch
    const Finished told = box.tune({"validate", sweep});
    INFO(told.err);
    ++checked;
    if (sweep.filename() == "warm_start.yaml") {  // which wants the experiment that is to be known
      CHECK(told.code == 2);
      CHECK(told.err.find("results/latest holds no experiment") != std::string::npos);
      continue;
    }
    CHECK(told.code == 0);
    CHECK(told.out.starts_with("ok: "));
  }
  CHECK(checked >= 7);  // those of the engines need no LibTorch
}

// The pools of a sweep, each as the end of one: that which it has, and those in comments.
std::vector<std::string> pools_of(const std::string& sweep) {
  std::vector<std::string> pools;
  const std::size_t at = sweep.find("\npool:");
  if (at != std::string::npos) pools.push_back(sweep.substr(at + 1));
  constexpr std::string_view kComment = "# pool:";
  for (const std::string& line : lines_of(sweep)) {
    if (line.starts_with(kComment)) pools.push_back(line.substr(2) + "\n");
  }
  return pools;
}

TEST_CASE("every pool of config/ is one that tune validate shows and finds nothing wrong with") {
  Sandbox box;
  fs::create_directories(box.path() / "bin");
  for (const char* program :
       {"sbatch", "squeue", "scancel", "ssh", "kubectl", "python3", "qsub", "qstat", "qdel", "bsub",
        "bjobs", "condor_submit", "condor_q", "condor_rm", "flux", "bkill"}) {
    const fs::path stub = box.path() / "bin" / program;
    box.write(stub, "#!/bin/sh\n");
    fs::permissions(stub, fs::perms::owner_all);
  }
  box.set("PATH", (box.path() / "bin").string() + ":" + std::getenv("PATH"));
  int checked = 0;
  for (const auto& file : fs::directory_iterator(TUNE_SOURCE_DIR "/config")) {
    if (file.path().extension() != ".yaml") continue;
    for (const std::string& pool : pools_of(box.read(file.path()))) {
      CAPTURE(pool);
      box.write("sweep.yaml", yaml({}) + pool);
      const Finished told = box.tune({"validate", "sweep.yaml", "--pool"});
      INFO(told.err);
      ++checked;
      CHECK(told.code == 0);
      CHECK_HAS(told.out, "# tune-");
    }
  }
  CHECK(checked == 10);
}

TEST_CASE("the engine of three programs in config/ runs a sweep, and nothing of it stays") {
  const Sandbox box;
  const std::string pool = pools_of(box.read(TUNE_SOURCE_DIR "/config/engine.yaml")).at(0);
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 250}",
                                .rest = "stop: {training_iteration: 8}\nlisten: lo\n"}) +
                              pool);
  const std::string shown = box.tune({"validate", "sweep.yaml", "--pool"}).out;
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  // Its list finds the agents, by words that a shell, pgrep and sed have read.
  std::string log;
  for (const auto& entry : fs::directory_iterator(box.path() / "results/s/nodes")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("tune-")) log = name;
  }
  REQUIRE_FALSE(log.empty());
  const std::string name = log.substr(0, log.find(".log"));
  const std::string prefix = name.substr(0, name.rfind('-') + 1);
  constexpr std::string_view kAbove = "# listed as\n";
  std::string list = shown.substr(shown.find(kAbove) + kAbove.size());
  list.resize(list.find("\n#"));
  list.resize(list.rfind(' ') + 1);  // the prefix of a sweep without a name
  std::string listed;
  CHECK_MESSAGE(Sandbox::eventually([&] {
                  listed = box.run({"sh", "-c", list + prefix}).out;
                  return testing::has(listed, name + "|") && testing::has(listed, "|RUNNING\n");
                }),
                list, listed);
  const Finished finished = run.wait(std::chrono::seconds(100));
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", 4, 8);
  check_nothing_left(box, "results/s");
}

}  // namespace
}  // namespace tune
