// Every kind of trainable keeps this contract: fail, hang, be killed, save, restore and run in
// groups, with the same outcome. Sweeps of some trials, each of which fails in another way.
#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"
#include "process/trainable_kind.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

std::string sweep(const TrainableKind& kind, const std::string& config, const std::string& rest) {
  return kind.yaml + "config: " + config + "\nmetric: count\nmode: max\nseed: 5\n" + rest;
}

std::string frequent(const TrainableKind& kind) {
  return kind.if_it_saves("checkpoint: {frequency: 1}\n");
}

std::string error_of(const Sandbox& box, const fs::path& trial) {
  return box.read(fs::relative(trial / "error.txt", box.path()));
}

// "kill" of {"fail_how":"kill"}.
std::string told(const Sandbox& box, const fs::path& trial, const std::string& key) {
  const std::string file = fs::relative(trial / "params.json", box.path());
  return parse_json(box.read(file), file).get<std::string>(key);
}

std::string ending(const std::string& how) {
  if (how == "throw") return "told to fail in ";
  if (how == "kill") return "killed by signal 9 (SIGKILL)";
  if (how == "segv") return "killed by signal 11 (SIGSEGV)";
  if (how == "exit") return "exited with code 3";
  return "hang_timeout_s";
}

TEST_CASE("a trial that fails is an ERROR with its cause, and the others go on") {
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    Sandbox box;
    box.write(
        "sweep.yaml",
        sweep(
            kind,
            "{fail_in: step, fail_at: 2, fail_how: {grid_search: [throw, kill, exit, segv, hang]}}",
            "stop: {training_iteration: 3}\nhang_timeout_s: 1\n"));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "5", "--quiet"});
    INFO(run.err);
    CHECK(run.code == 1);
    const auto trials = trial_folders(box, "results/s");
    CHECK(trials.size() == 5);
    for (const fs::path& trial : trials) {
      const std::string how = told(box, trial, "fail_how");
      CAPTURE(how);
      const std::string error = error_of(box, trial);
      CAPTURE(error);
      CHECK_HAS(error, ending(how));
      CHECK_HAS(error, "rank 0 is to fail in step");  // its stderr
      if (how == "throw") CHECK_HAS(error, kind.where("step"));
      CHECK(lines_of(box.read(fs::relative(trial / "result.json", box.path()))).size() == 1);
    }
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE("setup and save that fail are told, and nothing half saved is left") {
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    Sandbox box;
    const std::string places = kind.saves ? "[setup, save, none]" : "[setup, none]";
    box.write("sweep.yaml", sweep(kind, "{fail_in: {grid_search: " + places + "}}",
                                  "stop: {training_iteration: 2}\n" + frequent(kind)));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3", "--quiet"});
    INFO(run.err);
    CHECK(run.code == 1);
    for (const fs::path& trial : trial_folders(box, "results/s")) {
      const std::string in = told(box, trial, "fail_in");
      CAPTURE(in);
      if (in == "none") {
        CHECK(fs::exists(trial / "checkpoint_000002" / "state.json") == kind.saves);
        continue;
      }
      CHECK_HAS(error_of(box, trial), kind.where(in));
      CHECK_HAS(error_of(box, trial), "told to fail in " + in);
      for (const auto& entry : fs::directory_iterator(trial)) {
        CHECK_FALSE(testing::has(entry.path().filename().string(), "checkpoint"));
      }
    }
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE("a trial that failed goes on from its last checkpoint, or else anew") {
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    Sandbox box;
    box.write("sweep.yaml",
              sweep(kind, "{fail_in: step, fail_at: 3, fail_how: {grid_search: [throw, kill]}}",
                    "stop: {training_iteration: 5}\nmax_failures: 1\n" + frequent(kind)));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
    INFO(run.err);
    CHECK(run.code == 0);
    check_complete(box, "results/s", 2, 5);
    for (const fs::path& trial : trial_folders(box, "results/s")) {
      const std::string file = fs::relative(trial / "result.json", box.path());
      int iteration = 0;
      for (const std::string& line : lines_of(box.read(file))) {
        const Value result = parse_json(line, file);
        CHECK(result.get<int>("count") == ++iteration);
        CHECK(result.get<int>("iterations_since_restore") ==
              (iteration < 3 || !kind.saves ? iteration : iteration - 2));
      }
      CHECK_HAS(box.read(fs::relative(trial / "stderr", box.path())), "--- attempt 2 ---");
    }
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE("a load that fails is the error of the attempt that restores") {
  for (const TrainableKind& kind : trainable_kinds()) {
    if (!kind.saves) continue;
    CAPTURE(kind.name);
    Sandbox box;
    box.write(
        "sweep.yaml",
        sweep(kind, "{fail_in: [step, load], fail_at: 2, fail_how: throw, step_ms: 1}",
              "stop: {training_iteration: 3}\ncheckpoint: {frequency: 1}\nmax_failures: 1\n"));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1", "--quiet"});
    INFO(run.err);
    CHECK(run.code == 1);
    const std::string error = error_of(box, trial_folders(box, "results/s").at(0));
    CAPTURE(error);
    CHECK_HAS(error, kind.where("load"));
    CHECK_HAS(error, "told to fail in load");
  }
}

TEST_CASE("an interrupted sweep saves, and a resume goes on from there") {
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    Sandbox box;
    box.write("sweep.yaml", sweep(kind, "{step_ms: {grid_search: [20, 21]}}",
                                  "stop: {training_iteration: 12}\n"));
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 4); }));
    run.signal(SIGINT);
    CHECK(run.wait().code == 128 + SIGINT);
    CHECK(box.of_trials("results/s", "checkpoint_000012").empty());
    const Finished resumed = box.tune({"resume", "results/s", "--quiet"});
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    check_complete(box, "results/s", 2, 12);
    for (const fs::path& trial : trial_folders(box, "results/s")) {
      const std::string file = fs::relative(trial / "result.json", box.path());
      const auto lines = lines_of(box.read(file));
      CHECK(parse_json(lines.back(), file).get<int>("count") == 12);
      CHECK(parse_json(lines.back(), file).get<int>("iterations_since_restore") < 12);
    }
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE("a killed driver takes every trial along, and a resume loses nothing") {
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    Sandbox box;
    box.write("sweep.yaml", sweep(kind, "{step_ms: {grid_search: [20, 21]}}",
                                  "stop: {training_iteration: 8}\n" + frequent(kind)));
    {
      Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
      REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 4); }));
      run.signal(SIGKILL);
      run.wait();
    }
    CHECK(box.is_quiet());
    const Finished resumed = box.tune({"resume", "results/s", "--quiet"});
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    check_complete(box, "results/s", 2, 8);
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE("trials are stopped and paused at rungs, and those that go on keep their count") {
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    Sandbox box;
    box.write("sweep.yaml",
              sweep(kind, "{x: {grid_search: [1, 2, 3, 4]}}",
                    "scheduler: {asha: {type: promote, max_t: 4, reduction_factor: 2}}\n"));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
    INFO(run.err);
    CHECK(run.code == 0);
    std::size_t went_on = 0;
    for (const fs::path& trial : trial_folders(box, "results/s")) {
      const std::string file = fs::relative(trial / "result.json", box.path());
      int count = 0;
      for (const std::string& line : lines_of(box.read(file))) {
        CHECK(parse_json(line, file).get<int>("count") == ++count);
      }
      went_on += count > 1;
    }
    CHECK(went_on >= 2);
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE(
    "a rank that fails ends its group with the first cause, which goes on from its checkpoint") {
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    Sandbox box;
    const std::string places = kind.saves ? "[setup, step, save]" : "[setup, step]";
    box.write("sweep.yaml",
              sweep(kind,
                    "{fail_in: {grid_search: " + places +
                        "}, fail_how: {grid_search: [throw, kill]}, fail_rank: 1, fail_at: 2, "
                        "step_ms: 1}",
                    "stop: {training_iteration: 4}\nresources_per_trial: {cpu: 2, ranks: 2}\n"
                    "max_failures: 1\n" +
                        frequent(kind)));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "4", "--quiet"});
    INFO(run.err);
    CHECK(run.code == 0);
    check_complete(box, "results/s", kind.saves ? 6 : 4, 4);
    for (const fs::path& trial : trial_folders(box, "results/s")) {
      const std::string error = error_of(box, trial);
      CAPTURE(error);
      CHECK_HAS(error, "rank 1");
      CHECK_HAS(error, "rank 1 is to fail in " + told(box, trial, "fail_in"));
      CHECK(fs::exists(trial / "stdout.1"));
    }
    check_nothing_left(box, "results/s");
  }
}

}  // namespace
}  // namespace tune
