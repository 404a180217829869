// Whole sweeps with real Redis, agent and workers, from the command line.
#include "process/sweep.h"

#include <doctest/doctest.h>

#include <signal.h>

#include <set>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// The folder of the trial of results/s, of which there is one.
std::string only_trial(const Sandbox& box) {
  const std::vector<fs::path> folders = trial_folders(box, "results/s");
  REQUIRE(folders.size() == 1);
  return fs::relative(folders[0], box.path());
}

TEST_CASE("a quiet sweep says its best configuration and nothing else") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 2}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
  CHECK(run.code == 0);
  CHECK(lines_of(run.out).size() == 1);
  CHECK(run.err.empty());
}

TEST_CASE("a sweep leaves the best configuration on stdout and every file of its trials") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 5}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto out = lines_of(run.out);
  REQUIRE(!out.empty());
  CHECK(out.back().starts_with("{\"lr\":"));
  CHECK_HAS(run.err, "== Status ==");
  CHECK_HAS(run.err, "Number of trials: 5/5 (5 TERMINATED)");
  CHECK_HAS(run.err, " offers 2 CPUs, ");
  CHECK_HAS(run.err, "Resources requested: 0.0/2 CPUs");
  CHECK_FALSE(
      testing::has(run.err, "0.0/0 CPUs"));  // also not in the first table, before it joined

  CHECK(lines_of(box.read("results/s/results.csv")).size() == 6);
  CHECK(fs::read_symlink(box.path() / "results/latest") == "s");
  int trials = 0;
  for (const auto& entry : fs::directory_iterator(box.path() / "results/s")) {
    const std::string id = entry.path().filename();
    if (!entry.is_directory() || id == "store") continue;
    ++trials;
    CHECK(lines_of(box.read("results/s/" + id + "/result.json")).size() == 3);
    CHECK(lines_of(box.read("results/s/" + id + "/progress.csv")).size() == 4);
    CHECK_HAS(box.read("results/s/" + id + "/params.json"), "\"lr\"");
    CHECK_HAS(box.read("results/s/" + id + "/stdout"), "--- attempt 1 ---");
    CHECK(fs::exists(entry.path() / "checkpoint_000003" / "state.json"));
  }
  CHECK(trials == 5);
  CHECK(box.is_quiet());

  const Finished best = box.tune({"best", "results/s"});
  CHECK(best.code == 0);
  const Finished quiet = box.tune({"run", "sweep.yaml", "--name", "q", "--cpus", "2", "--quiet"});
  CHECK(quiet.code == 0);
  CHECK(lines_of(quiet.out).back() == out.back());
  CHECK_FALSE(testing::has(quiet.err, "Status"));
}

// The numbers of results that the trials of results/s have.
std::multiset<std::size_t> lengths_of_trials(Sandbox& box) {
  std::multiset<std::size_t> lengths;
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    lengths.insert(lines_of(box.read(fs::relative(trial, box.path()) / "result.json")).size());
  }
  return lengths;
}

TEST_CASE("asha stops weak trials early and says so") {
  Sandbox box;
  box.write(
      "sweep.yaml",
      yaml({.num_samples = 12,
            .rest = "scheduler: {asha: {max_t: 9, grace_period: 1, reduction_factor: 3}}\n"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_HAS(run.err, "Using AsyncHyperBand: num_stopped=");
  const std::string last = run.err.substr(run.err.rfind("== Status =="));
  CHECK_HAS(last, "Bracket: Iter 9.000: ");
  CHECK_FALSE(testing::has(last, "None"));
  const auto rows = lines_of(box.read("results/s/results.csv"));
  CHECK(rows.size() == 13);
  const auto lengths = lengths_of_trials(box);
  CHECK(lengths.size() == 12);
  CHECK(lengths.count(9) >= 1);
  CHECK(lengths.count(9) < 12);
  CHECK(lengths.count(1) + lengths.count(3) + lengths.count(9) == 12);
}

TEST_CASE("asha by promotion pauses trials at rungs and lets the best go on") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 9,
                                .rest = "scheduler: {asha: {type: promote, max_t: 9, "
                                        "reduction_factor: 3}}\n"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  // 9 / 3 go on from 1, at least; 3 / 3 from 3 on to max_t.
  const std::string last = run.err.substr(run.err.rfind("== Status =="));
  CHECK_HAS(last, "Using AsyncHyperBand by promotion: num_stopped=");
  CHECK_HAS(last, "num_waiting=0");
  CHECK_HAS(last, "Number of trials: 9/9 (9 TERMINATED)");
  const auto lengths = lengths_of_trials(box);
  CHECK(lengths.count(1) <= 6);
  CHECK(lengths.count(9) >= 1);
  CHECK(lengths.count(1) + lengths.count(3) + lengths.count(9) == 9);
}

TEST_CASE("the same seed tries the same configurations and gives the same results") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 4}));
  for (const char* name : {"a", "b"}) {
    REQUIRE(box.tune({"run", "sweep.yaml", "--name", name, "--cpus", "1", "--quiet"}).code == 0);
  }
  // Trials have names of their own experiment; what else lasts is the same.
  std::vector<std::string> outcomes;
  for (const char* name : {"a", "b"}) {
    const std::string experiment = std::string("results/") + name;
    check_complete(box, experiment, 4, 3);
    std::string& outcome = outcomes.emplace_back();
    for (const fs::path& trial : trial_folders(box, experiment)) {
      const std::string folder = fs::relative(trial, box.path());
      outcome += box.read(folder + "/params.json");
      for (const std::string& line : lines_of(box.read(folder + "/result.json"))) {
        const Value result = parse_json(line, folder);
        for (const char* key : {"mean_accuracy", "training_iteration", "done", "experiment_tag"}) {
          outcome += std::string(key) + " " + result.at(key).dump() + "\n";
        }
      }
    }
  }
  CHECK(lines_of(outcomes[0]).size() == 4 * (1 + 3 * 4));
  CHECK(outcomes[0] == outcomes[1]);
  // Not for any seed: the configurations are drawn by it.
  REQUIRE(box.tune({"run", "sweep.yaml", "--name", "c", "--cpus", "1", "--quiet", "--seed", "6"})
              .code == 0);
  const std::string other = fs::relative(trial_folders(box, "results/c").at(0), box.path());
  const std::string first = fs::relative(trial_folders(box, "results/a").at(0), box.path());
  CHECK(box.read(other + "/params.json") != box.read(first + "/params.json"));
}

TEST_CASE("a trial that fails is an ERROR with its cause, the others go on") {
  struct Case {
    const char* in;
    const char* how;
    const char* cause;
  };
  const Case cases[] = {
      {"setup", "throw", "setup: told to fail in setup"},
      {"step", "throw", "step: told to fail in step"},
      {"save", "throw", "save: told to fail in save"},
      {"step", "throw_int", "step: threw something that is not a std::exception (int)"},
      {"step", "exit", "exited with code 3"},
      {"step", "segv", "killed by signal 11 (SIGSEGV)"},
      {"setup", "abort", "killed by signal 6 (SIGABRT)"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.in);
    CAPTURE(c.how);
    Sandbox box;
    box.write("sweep.yaml", yaml({.trainable = "Faulty",
                                  .config = std::string("{fail_in: {grid_search: [none, ") + c.in +
                                            "]}, fail_how: " + c.how + ", fail_at: 1}",
                                  .num_samples = 1,
                                  .rest = "stop: {training_iteration: 1}\n",
                                  .metric = "count"}));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    INFO(run.err);
    CHECK(run.code == 1);
    CHECK_HAS(run.err, c.cause);
    CHECK_HAS(run.err, "1 TERMINATED");
    CHECK_HAS(run.err, "1 ERROR");
    bool told = false;
    for (const auto& entry : fs::recursive_directory_iterator(box.path() / "results/s")) {
      if (entry.path().filename() != "error.txt") continue;
      told = testing::has(box.read(fs::relative(entry.path(), box.path())), c.cause);
    }
    CHECK(told);
    CHECK(box.is_quiet());
  }
}

TEST_CASE("a failing load is the error of the attempt that restores") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: load, fail_attempts: 9, fail_at: 1, step_ms: 50}",
                  .num_samples = 1,
                  .rest = "stop: {training_iteration: 100}\ncheckpoint: {frequency: 1}\n",
                  .metric = "count"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  REQUIRE(Sandbox::eventually(
      [&] { return !box.of_trials("results/s", "checkpoint_000001").empty(); }));
  run.signal(SIGINT);
  CHECK(run.wait().code == 128 + SIGINT);
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 1);
  CHECK_HAS(resumed.err, "load: told to fail in load");
}

TEST_CASE("max_failures starts a trial again from its last checkpoint") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: step, fail_how: segv, fail_at: 3, fail_attempts: 1}",
                  .num_samples = 1,
                  .rest = "stop: {training_iteration: 5}\ncheckpoint: {frequency: 1}\n"
                          "max_failures: 1\n",
                  .metric = "count"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const std::string trial = only_trial(box);
  // Steps 1 to 5 once each: the second attempt went on from checkpoint 2.
  const auto lines = lines_of(box.read(trial + "/result.json"));
  REQUIRE(lines.size() == 5);
  for (int i = 0; i < 5; ++i) {
    const Value result = parse_json(lines[i], trial);
    CHECK(result.get<int>("count") == i + 1);
    CHECK(result.get<int>("training_iteration") == i + 1);
    CHECK(result.get<int>("iterations_since_restore") == (i < 2 ? i + 1 : i - 1));
  }
  CHECK_HAS(box.read(trial + "/stderr"), "--- attempt 2 ---");
}

TEST_CASE("an error shows the last lines of its own attempt") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: step, fail_how: segv, fail_at: 1, fail_attempts: 2}",
                  .num_samples = 1,
                  .rest = "stop: {training_iteration: 1}\nmax_failures: 1\n",
                  .metric = "count"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 1);
  const std::string text = box.read(only_trial(box) + "/error.txt");
  CAPTURE(text);
  const std::size_t second = text.find("--- attempt 2 failed");
  REQUIRE(second != std::string::npos);
  CHECK_HAS(text.substr(0, second), "--- attempt 1 ---");
  CHECK_HAS(text.substr(second), "--- attempt 2 ---");
  CHECK_FALSE(testing::has(text.substr(second), "--- attempt 1 ---"));
}

TEST_CASE("a trial that hangs is ended and told") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.trainable = "Faulty",
                                .config = "{fail_in: step, fail_how: hang}",
                                .num_samples = 1,
                                .rest = "stop: {training_iteration: 2}\nhang_timeout_s: 0.5\n",
                                .metric = "count"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 1);
  CHECK_HAS(run.err, "hang_timeout_s");
  CHECK(box.is_quiet());
}

TEST_CASE("a results folder whose path is longer than a socket's may be") {
  Sandbox box;
  const std::string deep = std::string(100, 'd') + "/" + std::string(100, 'e');
  box.write("sweep.yaml", yaml({.num_samples = 2}));
  const Finished run = box.tune({"run", "sweep.yaml", "--storage", deep, "--name", "s", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(lines_of(box.read(deep + "/s/results.csv")).size() == 3);
}

TEST_CASE("a group's ranks run together and are judged as one") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.num_samples = 3,
                  .rest = "scheduler: {asha: {max_t: 4, grace_period: 1, reduction_factor: 2}}\n"
                          "resources_per_trial: {cpu: 2, ranks: 2}\n"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  std::multiset<std::size_t> lengths;
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    CHECK(fs::exists(trial / "stdout.1"));
    lengths.insert(lines_of(box.read(fs::relative(trial, box.path()) / "result.json")).size());
  }
  // One after the other, as there are CPUs for one group. The first goes to the end; the others are
  // worse and stop at the first rung.
  CHECK((lengths == std::multiset<std::size_t>{1, 1, 4}));
  CHECK(box.is_quiet());
}

TEST_CASE("a rank that dies ends its group with the first cause") {
  Sandbox box;
  box.write(
      "sweep.yaml",
      yaml({.trainable = "Faulty",
            .config = "{fail_in: step, fail_how: kill, fail_at: 2, fail_rank: 1, step_ms: 20}",
            .num_samples = 1,
            .rest = "stop: {training_iteration: 1000}\n"
                    "resources_per_trial: {cpu: 2, ranks: 2}\n",
            .metric = "count"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  CHECK(run.code == 1);
  CHECK_HAS(run.err, "killed by signal 9 (SIGKILL)");
  CHECK_HAS(run.err, "rank 1");
  CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
