// Processes are killed or the user interrupts: nothing is lost, and resuming goes on from
// there.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>

#include "core/random.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/random.h"
#include "process/sweep.h"
#include "tune/results/experiment_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

std::string slow_sweep(int trials, int step_ms = 30) {
  return yaml({.config = fmt::format("{{lr: {{loguniform: [1e-3, 1.0]}}, step_ms: {}}}", step_ms),
               .num_samples = trials,
               .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 2}\n"});
}

// Leftovers of a killed driver's agent in trials that ran: a checkpoint that it had named and not
// told of, and half of one.
std::vector<fs::path> leave_checkpoints(const Sandbox& box) {
  std::vector<fs::path> left;
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    const std::string results = fs::relative(trial / "result.json", box.path());
    const std::size_t steps = lines_of(box.read(results)).size();
    if (steps == 0 || steps > 6) continue;
    for (const char* name : {"checkpoint_000900", ".checkpoint_000901.tmp-1"}) {
      fs::create_directories(trial / name / "model");
      left.push_back(trial / name);
    }
  }
  return left;
}

TEST_CASE("a killed driver takes every process along, and resume loses nothing") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(4));
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 7); }));
    run.signal(SIGKILL);
    run.wait();
  }
  CHECK(box.is_quiet());
  CHECK(fs::is_empty(box.path() / "tmp"));     // no socket stays behind
  box.write("results/s/run.json.tmp-1", "{");  // as if it had been writing
  const std::vector<fs::path> leftovers = leave_checkpoints(box);
  REQUIRE_FALSE(leftovers.empty());
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(lines_of(resumed.out).back().starts_with("{\"lr\":"));
  check_complete(box, "results/s", 4, 8);
  for (const fs::path& leftover : leftovers) CHECK_FALSE(fs::exists(leftover));
  check_nothing_left(box, "results/s");
}

TEST_CASE("a killed worker is a failure with its signal, and max_failures starts it again") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(1) + "max_failures: 1\n");
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  const pid_t worker = worker_pid(box, trial_folders(box, "results/s").front());
  CHECK(kill(worker, SIGKILL) == 0);
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(finished.err, "killed by signal 9 (SIGKILL)");
  check_complete(box, "results/s", 1, 8);
  CHECK(box.is_quiet());
}

TEST_CASE("a killed zygote costs no running trial") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(4));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  // Workers are forked from it and share its command line: it is the oldest.
  const auto pids = box.processes("tune-worker");
  REQUIRE(pids.size() >= 2);
  CHECK(kill(pids.front(), SIGKILL) == 0);
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", 4, 8);
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
}

TEST_CASE("a killed store is started again and costs nothing") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(3));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  const auto servers = box.processes("redis-server");
  REQUIRE(servers.size() == 1);
  kill(servers.front(), SIGKILL);
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(box.is_quiet());
  check_complete(box, "results/s", 3, 8);
}

TEST_CASE("a killed agent ends the run with a clear error, and resume goes on") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(3));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  for (const pid_t pid : box.processes(std::string("run\0sweep.yaml", 14))) {
    if (pid != run.pid()) kill(pid, SIGKILL);  // the agent is a fork of the driver
  }
  const Finished finished = run.wait();
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "agent");
  CHECK_HAS(finished.err, "tune resume results/s");
  CHECK(box.is_quiet());
  CHECK(box.tune({"resume", "results/s", "--quiet"}).code == 0);
  check_complete(box, "results/s", 3, 8);
}

TEST_CASE("the first signal lets trials save and says how to resume") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(number);
    Sandbox box;
    box.write("sweep.yaml", slow_sweep(3));
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
    run.signal(number);
    const Finished finished = run.wait();
    CHECK(finished.code == 128 + number);
    CHECK_HAS(finished.err, "tune resume results/s");
    CHECK_HAS(box.read("results/s/results.csv"), "PAUSED");
    CHECK(box.is_quiet());
    const Finished resumed = box.tune({"resume", "results/s"});
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    check_complete(box, "results/s", 3, 8);
  }
}

TEST_CASE("a second signal ends at once, still resumable") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: save, fail_how: hang, fail_at: 2, step_ms: 300}",
                  .num_samples = 1,
                  .rest = "stop: {training_iteration: 4}\n",
                  .metric = "count"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  run.signal(SIGINT);
  // It hangs while saving; without a second signal it would be given 30 s.
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  run.signal(SIGINT);
  const Finished finished = run.wait(std::chrono::seconds(8));
  CHECK(finished.code == 128 + SIGINT);
  CHECK(box.is_quiet());
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
}

// The agent, or the store, that stands still; one signal makes the driver wait for it.
void check_second_signal(const std::string& process) {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(4));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  std::vector<pid_t> found = box.processes(process);
  std::erase(found, run.pid());
  REQUIRE(found.size() == 1);
  kill(found[0], SIGSTOP);
  run.signal(SIGTERM);
  CHECK_FALSE(run.ends_within(std::chrono::milliseconds(200)));
  run.signal(SIGTERM);
  const Finished finished = run.wait(std::chrono::seconds(8));
  INFO(finished.err);
  CHECK(finished.code == 128 + SIGTERM);
  CHECK_HAS(finished.err, "tune resume results/s");
  CHECK(box.is_quiet());
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", 4, 8);
}

TEST_CASE("a second signal ends at once also while the agent stands still") {
  check_second_signal(std::string("\0--cpus\0", 8));  // a fork of the driver
}

TEST_CASE("a second signal ends at once also while the store stands still") {
  check_second_signal("redis-server");
}

TEST_CASE("a signal at any moment, also while starting and ending, is obeyed and can be resumed") {
  const int moments = share_of_kills(10);
  RandomStream random(test_seed(), "signals", 0);
  for (int i = 0; i < moments; ++i) {
    CAPTURE(i);
    Sandbox box;
    box.write("sweep.yaml", slow_sweep(3));
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
    run.ends_within(std::chrono::microseconds(random.integer(0, 700'000)));
    run.signal(SIGTERM);
    const bool twice = random.uniform() < 0.5;
    if (twice) {
      run.ends_within(std::chrono::microseconds(random.integer(0, 30'000)));
      run.signal(SIGTERM);
    }
    const Finished finished = run.wait(std::chrono::seconds(20));
    INFO(finished.err);
    CHECK((finished.code == 0 || finished.code == 128 + SIGTERM));
    CHECK(box.is_quiet());
    const bool begun = fs::exists(box.path() / "results/s/experiment.json");
    const Finished again =
        begun ? box.tune({"resume", "results/s", "--quiet"})
              : box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
    INFO(again.err);
    CHECK(again.code == 0);
    check_complete(box, "results/s", 3, 8);
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE("a second driver on the same experiment is refused while the first lives") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(500));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  const Finished same = box.tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(same.code == 2);
  CHECK_HAS(same.err, "is running");
  const Finished resumed = box.tune({"resume", "results/s"});
  CHECK(resumed.code == 2);
  CHECK_HAS(resumed.err, "in use by process");
  CHECK_HAS(resumed.err, std::to_string(run.pid()));
}

TEST_CASE("status shows a sweep that runs elsewhere, and a finished one") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(2, 250));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  const Finished live = box.tune({"status", "results/s"});  // until the sweep is over
  CHECK(live.code == 0);
  CHECK_HAS(live.out + live.err, "RUNNING");
  CHECK(run.wait().code == 0);
  const Finished after = box.tune({"status", "results/s"});
  CHECK(after.code == 0);
  CHECK_HAS(after.out + after.err, "2/2 (2 TERMINATED)");
  CHECK(!testing::has(after.out + after.err, "resume"));
}

TEST_CASE("status of a sweep whose driver was killed says so, and how it goes on") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep(500));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  const std::string driver = std::to_string(run.pid());
  run.signal(SIGKILL);
  run.wait();
  REQUIRE(Sandbox::eventually([&] { return !is_live(box.path() / "results/s"); }));
  const Finished status = box.tune({"status", "results/s"});
  CHECK(status.code == 0);
  CHECK_HAS(status.out + status.err, "no driver holds it (the last was process " + driver);
  CHECK_HAS(status.out + status.err, "resume it with: tune resume results/s");
}

}  // namespace
}  // namespace tune
