// Groups of ranks that fail: every rank, in every phase, in every way.
#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kGroupSteps = 4;

// A rank fails at step 2, once, in each of the ways; for load the attempt before it fails as well.
struct Ways {
  std::string how;
  std::string limits;
};
const Ways kOwnEnds = {"[throw, kill, exit, hang]", "hang_timeout_s: 1\n"};
const Ways kStopped = {"[stop]", "group_timeout_s: 1\nalone_timeout_s: 1\n"};

std::string sweep(const std::string& phases, int failures, const Ways& ways) {
  return std::string("plugin: ") + TUNE_SYNTHETIC_PLUGIN +
         "\n"
         "trainable: Faulty\n"
         "config:\n"
         "  fail_in: " +
         phases +
         "\n"
         "  fail_how: {grid_search: " +
         ways.how +
         "}\n"
         "  fail_rank: {grid_search: [0, 1, 2]}\n"
         "  fail_at: 2\n"
         "  step_ms: 1\n"
         "metric: count\n"
         "mode: max\n"
         "stop: {training_iteration: 4}\n"
         "resources_per_trial: {cpu: 3, ranks: 3}\n"
         "checkpoint: {frequency: 1}\n"
         "max_failures: " +
         std::to_string(failures) + "\n" + ways.limits;
}

std::string cause(const std::string& how, const std::string& phase) {
  if (how == "throw") return "told to fail in " + phase;
  if (how == "kill") return "killed by signal 9 (SIGKILL)";
  if (how == "exit") return "code 3";
  if (how == "stop") return "did not finish " + phase;
  return "killed";  // within hang_timeout_s
}

std::string parameter(const std::string& params, const std::string& key) {
  const std::size_t at = params.find("\"" + key + "\":") + key.size() + 3;
  return params.substr(at, params.find_first_of(",}", at) - at);
}

void check_phase(const std::string& phase, const std::string& phases, int failures,
                 const Ways& ways = kOwnEnds) {
  Sandbox box;
  box.write("sweep.yaml", sweep(phases, failures, ways));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "12", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  const std::size_t trials = ways.limits == kOwnEnds.limits ? 12 : 3;
  check_complete(box, "results/s", trials, kGroupSteps);  // goes on from the last whole checkpoint
  check_nothing_left(box, "results/s");
  std::size_t seen = 0;
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    const std::string folder = "results/s/" + trial.filename().string();
    const std::string params = box.read(folder + "/params.json");
    const std::string error = box.read(folder + "/error.txt");
    const std::string rank = parameter(params, "fail_rank");
    std::string how = parameter(params, "fail_how");
    how = how.substr(1, how.size() - 2);
    CAPTURE(params);
    CAPTURE(error);
    CHECK_HAS(error, "rank " + rank);
    CHECK_HAS(error, "rank " + rank + " is to fail in " + phase);  // its stderr
    CHECK_HAS(error, cause(how, phase));
    ++seen;
  }
  CHECK(seen == trials);
}

TEST_CASE("a rank that fails in setup is the group's failure, and the next attempt goes on") {
  check_phase("setup", "setup", 1);
}

TEST_CASE("a rank that fails in a step is the group's failure, and the next attempt goes on") {
  check_phase("step", "step", 1);
}

TEST_CASE("a rank that fails in a save is the group's failure, and no half checkpoint is loaded") {
  check_phase("save", "save", 1);
}

TEST_CASE("a rank that fails in a load is the group's failure, and the next attempt goes on") {
  check_phase("load", "[step, load]", 2);
}

TEST_CASE("a rank that is stopped is named after group_timeout_s, whatever it is in") {
  SUBCASE("setup") {
    check_phase("setup", "setup", 1, kStopped);
  }
  SUBCASE("a step") {
    check_phase("step", "step", 1, kStopped);
  }
  SUBCASE("a save") {
    check_phase("save", "save", 1, kStopped);
  }
  SUBCASE("a load") {
    check_phase("load", "[step, load]", 2, kStopped);
  }
}

// The limits of time are far: only the death itself can end these groups so soon.
void check_kill_ends(const std::string& phases, int failures, std::size_t trials) {
  Sandbox box;
  box.write("sweep.yaml", sweep(phases, failures, {"[kill]", "group_timeout_s: 600\n"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "27", "--quiet"});
  CHECK(run.ends_within(std::chrono::seconds(60)));
  const Finished end = run.wait();
  INFO(end.err);
  CHECK(end.code == 1);  // all trials fail
  check_nothing_left(box, "results/s");
  const std::vector<fs::path> folders = trial_folders(box, "results/s");
  CHECK(folders.size() == trials);
  for (const fs::path& trial : folders) {
    const std::string folder = "results/s/" + trial.filename().string();
    const std::string error = box.read(folder + "/error.txt");
    const std::string rank = parameter(box.read(folder + "/params.json"), "fail_rank");
    CHECK_HAS(error, "rank " + rank + ": killed by signal 9");
  }
}

TEST_CASE("a rank that is killed ends its group at once, whatever it is in") {
  SUBCASE("setup, a step or a save") {
    check_kill_ends("{grid_search: [setup, step, save]}", 0, 9);
  }
  SUBCASE("a load") {
    check_kill_ends("[step, load]", 1, 3);
  }
}

// A stopped process does not see that it is asked to end.
TEST_CASE("a rank that does not listen does not outlive one that is killed") {
  Sandbox box;
  box.write("group.yaml",
            std::string("plugin: ") + TUNE_SYNTHETIC_PLUGIN +
                "\n"
                "trainable: Faulty\n"
                "config: {fail_in: step, fail_how: stop, fail_rank: 1, fail_at: 2, step_ms: 1}\n"
                "metric: count\n"
                "mode: max\n"
                "resources_per_trial: {cpu: 2, ranks: 2}\n"
                "stop: {training_iteration: 1000000}\n"
                "group_timeout_s: 600\n");
  Running run = box.start_tune({"run", "group.yaml", "--name", "s", "--cpus", "2", "--quiet"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  const fs::path trial = trial_folders(box, "results/s").at(0);
  REQUIRE(Sandbox::eventually([&] {
    return testing::has(box.read("results/s/" + trial.filename().string() + "/stderr.1"),
                        "is to fail");
  }));
  kill(worker_pid(box, trial), SIGKILL);
  CHECK(run.ends_within(std::chrono::seconds(30)));
  CHECK(run.wait().code != 0);
  check_nothing_left(box, "results/s");
  const std::string error = box.read("results/s/" + trial.filename().string() + "/error.txt");
  CHECK_HAS(error, "rank 0: killed by signal 9");
}

// ---- Ranks that do not do alike -----------------------------------------------------------------

std::string uneven(const std::string& trainable, const std::string& config, int ranks,
                   const std::string& rest) {
  return std::string("plugin: ") + TUNE_UNEVEN_GROUP_PLUGIN + "\ntrainable: " + trainable +
         "\nconfig: " + config +
         "\n"
         "metric: count\n"
         "mode: max\n"
         "resources_per_trial: {cpu: " +
         std::to_string(ranks) + ", ranks: " + std::to_string(ranks) + "}\n" + rest;
}

// Ranks 1 and 2, each the deserter of a trial, which then goes on from step 2's checkpoint. An
// empty cause: nobody is one.
void check_deserters(const std::string& how, const std::string& timeout, const std::string& cause) {
  Sandbox box;
  box.write("sweep.yaml", uneven("deserter", "{rank: {grid_search: [1, 2]}, how: " + how + "}", 3,
                                 "stop: {training_iteration: 5}\n"
                                 "checkpoint: {frequency: 1}\n"
                                 "max_failures: 1\n"
                                 "group_timeout_s: " +
                                     timeout + "\n"));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "6", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  check_complete(box, "results/s", 2, 5);
  check_nothing_left(box, "results/s");
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    const std::string folder = "results/s/" + trial.filename().string();
    const std::string error = box.read(folder + "/error.txt");
    const std::string results = box.read(folder + "/result.json");
    CAPTURE(error);
    CHECK(testing::has(results, "\"iterations_since_restore\":5") == cause.empty());
    if (cause.empty()) {
      CHECK(error.empty());
    } else {
      CHECK_HAS(error,
                "rank " + parameter(box.read(folder + "/params.json"), "rank") + ": " + cause);
    }
  }
}

TEST_CASE("a rank that ends before the others is the group's failure, and is named") {
  const std::string far = "600";  // only the end itself can end these groups within the limit
  SUBCASE("its function returns") {
    check_deserters("return", far, "ended in step 3 before rank 0 did");
  }
  SUBCASE("its function returns, and the others wait for it") {
    check_deserters("return, waits: true", "1",
                    "ended in step 3, which others have not finished 1 s later");
  }
  SUBCASE("its process exits as if all were well") {
    check_deserters("exit", far, "exited with code 0 before its trial was over");
  }
}

TEST_CASE("only rank 0 says when a trial is done") {
  check_deserters("done", "600", "");
}

// Rank 1 works alone in step 2, for longer than ranks wait for one that is late, or for ever.
std::string lone_sweep(const std::string& how, const std::string& limits) {
  return uneven("loner", "{how: " + how + "}", 3,
                "stop: {training_iteration: 3}\ngroup_timeout_s: 1\n" + limits);
}

TEST_CASE("a rank that works alone is waited for beyond group_timeout_s") {
  Sandbox box;
  box.write("sweep.yaml", lone_sweep("works", "alone_timeout_s: 600\n"));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  check_complete(box, "results/s", 1, 3);
  CHECK(box.read("results/s/" + trial_folders(box, "results/s").at(0).filename().string() +
                 "/error.txt")
            .empty());
}

TEST_CASE("a rank that hangs or is stopped alone is named after alone_timeout_s") {
  for (const char* how : {"hangs", "stops"}) {
    Sandbox box;
    box.write("sweep.yaml", lone_sweep(how, "alone_timeout_s: 2\n"));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3", "--quiet"});
    CHECK(run.code == 1);
    CHECK_HAS(box.read("results/s/" + trial_folders(box, "results/s").at(0).filename().string() +
                       "/error.txt"),
              "rank 1: worked alone in step 2 for 2 s (alone_timeout_s), killed");
    check_nothing_left(box, "results/s");
  }
}

#if defined(__SANITIZE_THREAD__)  // the driver then writes each 64 KiB in most of a second
constexpr std::chrono::seconds kTalk{600};
#else
constexpr std::chrono::seconds kTalk{60};
#endif

TEST_CASE("a group waits, and nobody is blamed, while the driver stands still") {
  Sandbox box;
  box.write("sweep.yaml", uneven("talker", "{}", 3, "group_timeout_s: 1\n"));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3", "--quiet"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  run.signal(SIGSTOP);
  const std::string folder =
      "results/s/" + trial_folders(box, "results/s").at(0).filename().string();
  const auto last_steps = [&] {
    std::vector<std::string> steps;
    for (const char* rank : {"0", "1", "2"}) {
      steps.push_back(lines_of(box.read(folder + "/rank-" + rank)).back());
    }
    return steps;
  };
  // Longer than it would take to end a group whose rank 0 does not go on.
  constexpr std::chrono::seconds kLonger{5};
  std::vector<std::string> held;
  REQUIRE(Sandbox::eventually([&] {
    held = last_steps();
    return !Sandbox::eventually([&] { return last_steps() != held; }, kLonger);
  }));
  CHECK(held.at(0) != "300");
  CHECK(held == std::vector<std::string>(3, held.at(0)));  // all within the same step
  run.signal(SIGCONT);
  const Finished finished = run.wait(kTalk);
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(box.read(folder + "/error.txt").empty());
  check_complete(box, "results/s", 1, 300);
  check_nothing_left(box, "results/s");
}

TEST_CASE("each rank of a trial finds what torchrun gives") {
  Sandbox box;
  box.write("sweep.yaml", uneven("reader", "{}", 3, ""));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  const std::string folder =
      "results/s/" + trial_folders(box, "results/s").at(0).filename().string();
  for (const char* rank : {"0", "1", "2"}) {
    CHECK(box.read(folder + "/rank-" + rank) == "as torchrun's");
  }
}

TEST_CASE("each rank of a trial with MIG instances sees its own alone") {
  Sandbox box;
  box.set("LD_LIBRARY_PATH", std::string(TUNE_BINARY_DIR) + "/tests/fake_nvml");
  box.set("FAKE_GPUS", "1");
  box.set("FAKE_MIG", "3");
  box.write("sweep.yaml", uneven("viewer", "{}", 3, ""));
  const Finished run = box.run({"bash", "-c",
                                "unset CUDA_VISIBLE_DEVICES; exec " TUNE_BINARY_DIR
                                "/bin/tune run sweep.yaml --name s --cpus 3 --quiet "
                                "--set resources_per_trial/gpu=3"});
  INFO(run.err);
  CHECK(run.code == 0);
  const std::string folder =
      "results/s/" + trial_folders(box, "results/s").at(0).filename().string();
  CHECK(box.read(folder + "/rank-0") == "MIG-1-1 of which 0");
  CHECK(box.read(folder + "/rank-1") == "MIG-1-2 of which 0");
  CHECK(box.read(folder + "/rank-2") == "MIG-1-3 of which 0");
}

}  // namespace
}  // namespace tune
