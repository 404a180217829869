// The sweeps of config/, as a user who copies one of them finds them.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"
#include "process/sweep.h"
#include "skip.h"
#include "tune/results/analysis.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigFolder = TUNE_SOURCE_DIR "/config";

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
  for (const auto& file : fs::directory_iterator(kConfigFolder)) {
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

// A sweep of config/ with a trainable that has the same metric, and needs no LibTorch and no time.
std::string with_curve(const Sandbox& box, const fs::path& sweep) {
  std::string text;
  for (std::string line : lines_of(box.read(sweep))) {
    if (line.starts_with("plugin: ")) line = "plugin: " TUNE_SYNTHETIC_PLUGIN;
    if (line == "trainable: FashionMnist") line = "trainable: Curve";
    text += line + "\n";
  }
  return text;
}

// Runs such a sweep, checks how it ends, and gives what it and its events tell.
std::string told_by_run(const Sandbox& box, const std::string& name,
                        const std::string& set = "seed=1") {
  const std::string text = with_curve(box, kConfigFolder / (name + ".yaml"));
  box.write(name + ".yaml", text);
  const Finished run =
      box.tune({"run", name + ".yaml", "--name", name, "--cpus", "2", "--set", set});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Analysis analysis = Analysis::load(box.path() / "results" / name);
  for (const TrialSummary& trial : analysis.trials()) {
    CHECK(trial.status == TrialStatus::kTerminated);
  }
  CHECK_HAS(text, "\nnum_samples: " + std::to_string(analysis.trials().size()) + "\n");
  CHECK(analysis.best_result().get<double>("mean_accuracy") > 0.45);  // at lr 0.003, say, 0.1
  CHECK(lines_of(run.out).back() == analysis.best_config().dump());
  check_nothing_left(box, "results/" + name);
  return run.err + box.read("results/" + name + "/events.jsonl");
}

TEST_CASE("every sweep of config/ with the quickstart's trainable runs, and does what it is for") {
  const std::string by_model = R"("origin":"model")", pauses = R"("verdict":"pause")";
  const std::string is_cut = " is worse than the cut-off ";
  const std::map<std::string, std::vector<std::string>> table = {
      {"asha_brackets", {R"("bracket":2)", is_cut}},
      {"asha_promotion", {pauses, "by promotion: "}},
      {"auto", {"searcher: gp, as 3 parameters are few enough for a model", by_model, pauses}},
      {"cma_es", {by_model, "Using FIFO scheduling algorithm."}},
      {"fashion_mnist", {is_cut}},
      {"gp", {by_model, pauses}},
      {"halton", {"\"event\":\"proposed\"", is_cut}},
      {"hyperband", {pauses, " have come, the best 2 go on"}},
      {"median_stopping", {" is worse than those of more than half of "}},
      {"pb2", {" is among the worst 1 of 4 at iteration "}},
      {"pbt", {" is among the worst 2 of 8 at iteration "}},
      {"pbt_replay", {"step 2 of the schedule", "step 3 of the schedule"}},
      {"tpe", {by_model, is_cut}},
      {"warm_start", {}},  // below
  };
  for (const auto& file : fs::directory_iterator(kConfigFolder)) {
    const Sandbox box;
    if (!testing::has(box.read(file.path()), "\ntrainable: FashionMnist\n")) continue;
    const std::string name = file.path().stem();
    CAPTURE(name);
    REQUIRE(table.contains(name));
    if (name == "warm_start") continue;
    // A model may soon propose nothing that is worse than the median.
    const bool draws = name == "median_stopping";
    const std::string told = told_by_run(box, name, draws ? "searcher=random" : "seed=1");
    for (const std::string& words : table.at(name)) CHECK_HAS(told, words);
  }
}

TEST_CASE("warm_start.yaml after gp.yaml has a model from its first proposal on") {
  const Sandbox box;
  CHECK_HAS(told_by_run(box, "gp"), R"("origin":"start_up")");
  const std::string told = told_by_run(box, "warm_start");
  CHECK_HAS(told, "warm start: gp knows 27 trials of results/latest");
  CHECK_HAS(told, R"("origin":"model")");
  CHECK_FALSE(testing::has(told, R"("origin":"start_up")"));
}

TEST_CASE("pbt.yaml and pb2.yaml end with schedules of values, which tune prints") {
  for (const std::string name : {"pbt", "pb2"}) {
    CAPTURE(name);
    const Sandbox box;
    told_by_run(box, name);
    std::size_t changed = 0;
    for (const TrialSummary& trial : Analysis::load(box.path() / "results" / name).trials()) {
      const Finished shown = box.tune({"schedule", "results/" + name, trial.id});
      REQUIRE(shown.code == 0);
      CHECK_HAS(shown.out, "\n    schedule:\n");
      const std::string newest = lines_of(shown.out).back();
      CHECK_HAS(newest, "config: " + trial.config().dump() + "}");
      changed += testing::has(newest, "{iteration: 0, ") ? 0 : 1;
    }
    CHECK(changed >= 1);
  }
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
  for (const auto& file : fs::directory_iterator(kConfigFolder)) {
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
