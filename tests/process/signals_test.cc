// Signals that come to more than the driver: a batch system, systemd or a person that ends all.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

std::string signal_sweep(int trials, int step_ms = 30) {
  return yaml(
      {.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: " + std::to_string(step_ms) + "}",
       .num_samples = trials,
       .rest = "stop: {training_iteration: 8}\n"});
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

// The trials' reports, by file.
std::map<std::string, std::string> reported(const Sandbox& box) {
  std::map<std::string, std::string> files;
  for (const auto& folder : trial_folders(box, "results/s")) {
    const std::string file = std::filesystem::relative(folder / "result.json", box.path());
    files[file] = box.read(file);
  }
  return files;
}

std::vector<pid_t> workers_first(const Sandbox& box) {
  std::vector<pid_t> all = box.processes();
  std::ranges::reverse(all);
  return all;
}

// systemd and batch systems send theirs to all.
TEST_CASE("a signal to every process of a sweep pauses its trials, none is an error") {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(number);
    Sandbox box;
    box.write("sweep.yaml", signal_sweep(3));
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
    const std::vector<pid_t> all = workers_first(box);
    // Two workers, zygote, agent, driver, store; a worker may just have ended.
    REQUIRE(all.size() >= 5);
    for (const pid_t pid : all) kill(pid, number);
    const Finished finished = run.wait();
    INFO(finished.err);
    CHECK(finished.code == 128 + number);
    CHECK_HAS(finished.err, "tune resume results/s");
    const std::string table = box.read("results/s/results.csv");
    INFO(table);
    CHECK(count_of(table, "PAUSED") >= 1);
    CHECK(count_of(table, "RUNNING") == 0);
    CHECK(count_of(table, "ERROR") == 0);
    CHECK(box.is_quiet());
    const auto before = reported(box);
    const Finished resumed = box.tune({"resume", "results/s"});
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    check_complete(box, "results/s", 3, 8);
    // No step was lost and done again.
    const auto after = reported(box);
    for (const auto& [file, text] : before) CHECK(after.at(file).starts_with(text));
  }
}

// A program ends by such a signal, and its death is known before the signal to its agent is.
TEST_CASE("a signal to every process of a sweep of programs makes none of its trials an error") {
  const std::string plain = R"(
    for n in 1 2 3 4 5 6; do
      echo "tune: {\"loss\": $n}"
      until test $n = 1 || test -e go; do sleep 0.05; done
    done)";
  const std::string saves = R"(
    n=0
    test -z "$TUNE_CHECKPOINT" || n=$(cat "$TUNE_CHECKPOINT/n")
    echo hello 1 save >&$TUNE_FD
    while test $n -lt 6; do
      until test $n -lt 2 || test -e go; do sleep 0.05; done
      n=$((n + 1))
      echo "{\"loss\": $n}" >&$TUNE_FD
      while read word folder <&$TUNE_FD; do
        case $word in
          save) echo $n > "$folder/n"; echo saved >&$TUNE_FD ;;
          go) break ;;
          stop) exit 0 ;;
        esac
      done
    done)";
  for (const std::string& script : {plain, saves}) {
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
      CAPTURE(script);
      CAPTURE(number);
      Sandbox box;
      box.write("train.sh", script);
      box.write("sweep.yaml",
                "command: [sh, train.sh]\nconfig: {x: {grid_search: [1, 2, 3]}}\nmetric: loss\n"
                "mode: min\nseed: 5\n");
      Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
      REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 4); }));
      for (const pid_t pid : workers_first(box)) {
        kill(pid, number);
        run.ends_within(std::chrono::milliseconds(20));
      }
      const Finished finished = run.wait();
      INFO(finished.err);
      CHECK(finished.code == 128 + number);
      const std::string table = box.read("results/s/results.csv");
      INFO(table);
      for (const char* word : {"RUNNING", "ERROR", "TERMINATED"}) {
        CHECK_MESSAGE(count_of(table, word) == 0, word);
      }
      CHECK(box.is_quiet());
      box.write("go", "");
      const Finished resumed = box.tune({"resume", "results/s"});
      INFO(resumed.err);
      CHECK(resumed.code == 0);
      check_complete(box, "results/s", 3, 6);
    }
  }
}

// A set of signals as the system tells it, in `field`: bit n - 1 stands for signal n.
std::uint64_t signals_of(pid_t pid, const std::string& field) {
  std::istringstream status(read_file("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":"))
      return std::stoull(line.substr(field.size() + 1), nullptr, 16);
  }
  FAIL("no " << field << " of process " << pid);
  return 0;
}

TEST_CASE("a worker inherits no signal that the program has ignored, blocked or handled") {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGALRM);
  std::signal(SIGUSR2, SIG_IGN);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  Sandbox box;
  box.write("sweep.yaml", signal_sweep(1, 200));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  std::signal(SIGUSR2, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  CHECK((signals_of(run.pid(), "SigIgn") >> (SIGUSR2 - 1)) % 2 == 1);
  CHECK((signals_of(run.pid(), "SigBlk") >> (SIGALRM - 1)) % 2 == 1);
  const pid_t worker = worker_pid(box, trial_folders(box, "results/s").front());
  CHECK(signals_of(worker, "SigIgn") == 0);
  CHECK(signals_of(worker, "SigBlk") == 0);
  // Those that it obeys from its agent alone.
  std::uint64_t handled = 0;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) handled |= std::uint64_t{1} << (number - 1);
  // The C library, or a sanitizer, may handle real-time ones.
  constexpr std::uint64_t kStandard = 0x7fff'ffff;  // signals 1 to 31
  CHECK((signals_of(worker, "SigCgt") & kStandard) == handled);
  CHECK(run.wait().code == 0);
}

TEST_CASE("a trial that does not save within save_grace_s is ended without it") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: save, fail_how: hang, fail_at: 2, step_ms: 300}",
                  .num_samples = 1,
                  .rest = "stop: {training_iteration: 4}\nsave_grace_s: 0.5\n",
                  .metric = "count"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  run.signal(SIGINT);
  CHECK(run.ends_within(std::chrono::seconds(20)));  // by default it has 30
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 128 + SIGINT);
  CHECK_HAS(box.read("results/s/results.csv"), "PENDING");
  CHECK(box.is_quiet());
}

TEST_CASE("a save that hangs holds up the end of a time budget by no more than save_grace_s") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: save, fail_how: hang, fail_at: 1, step_ms: 2000}",
                  .num_samples = 1,
                  .rest = "time_budget_s: 1\nsave_grace_s: 3\n",
                  .metric = "count"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(run.ends_within(std::chrono::seconds(20)));  // by default it has 30
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(box.read("results/s/results.csv"), "TERMINATED");
  CHECK_HAS(box.read("results/s/events.jsonl"), "did not end within 3 s of being told to stop");
  CHECK(box.is_quiet());
}

TEST_CASE("a sweep whose time budget is spent says so, and goes on when it gets more") {
  Sandbox box;
  box.write("sweep.yaml", signal_sweep(6, 100) + "time_budget_s: 1\n");
  REQUIRE(box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1", "--quiet"}).code == 0);
  const std::size_t begun = box.of_trials("results/s", "params.json").size();
  REQUIRE(begun < 6);
  const Finished nothing = box.tune({"resume", "results/s"});
  CHECK(nothing.code == 0);
  CHECK_HAS(nothing.err,
            "is finished, nothing to resume: its time_budget_s of 1 s is spent, --time-budget-s "
            "gives more");
  const Finished less = box.tune({"resume", "results/s", "--time-budget-s", "0.5"});
  CHECK(less.code == 2);
  CHECK_HAS(less.err, "--time-budget-s 0.5: the experiment has time_budget_s 1 already");
  const auto before = reported(box);
  const Finished more = box.tune({"resume", "results/s", "--time-budget-s", "0", "--quiet"});
  INFO(more.err);
  CHECK(more.code == 0);
  CHECK(box.of_trials("results/s", "params.json").size() == 6);
  const auto after = reported(box);
  for (const auto& [file, text] : before) CHECK(after.at(file) == text);  // over, as they ended
  const Finished no_budget = box.tune({"resume", "results/s", "--time-budget-s", "9"});
  CHECK(no_budget.code == 2);
  CHECK_HAS(no_budget.err, "the experiment has no time_budget_s that could end it");
}

TEST_CASE("an agent that alone is told to end saves its trials, and the run can be resumed") {
  Sandbox box;
  box.write("sweep.yaml", signal_sweep(6, 200));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  std::vector<pid_t> forks = box.processes(std::string("run\0sweep.yaml", 14));
  std::erase(forks, run.pid());
  REQUIRE(forks.size() == 1);  // the agent is a fork of the driver
  kill(forks.front(), SIGTERM);
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "told to end (SIGTERM)");
  CHECK_HAS(finished.err, "tune resume results/s");
  CHECK(count_of(box.read("results/s/results.csv"), "ERROR") == 0);
  CHECK(box.is_quiet());
  const auto before = reported(box);
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", 6, 8);
  const auto after = reported(box);
  for (const auto& [file, text] : before) CHECK(after.at(file).starts_with(text));
}

TEST_CASE("with if_exists resume one command begins a sweep, goes on with it, and ends it once") {
  Sandbox box;
  const std::string sweep = signal_sweep(4, 200) + "name: s\nif_exists: resume\n";
  box.write("sweep.yaml", sweep);
  Running run = box.start_tune({"run", "sweep.yaml", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  kill(run.pid(), SIGINT);
  CHECK(run.wait().code == 128 + SIGINT);
  const auto before = reported(box);

  // More trials count, another grace does not.
  const Finished resumed = box.tune(
      {"run", "sweep.yaml", "--cpus", "2", "--num-samples", "5", "--set", "save_grace_s=9"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_HAS(resumed.err, "resuming s as it was begun; these changes do not count: save_grace_s\n");
  CHECK_FALSE(testing::has(resumed.err, "sweep_hash"));
  check_complete(box, "results/s", 5, 8);
  const auto after = reported(box);
  for (const auto& [file, text] : before) CHECK(after.at(file).starts_with(text));

  const Finished again = box.tune({"run", "sweep.yaml"});
  CHECK(again.code == 0);
  CHECK(again.out == resumed.out);
  CHECK(reported(box) == after);
  CHECK(box.tune({"run", "sweep.yaml", "--fresh", "--quiet"}).code == 0);
  CHECK(std::filesystem::exists(box.path() / "results/s.old-1"));
}

TEST_CASE("a zygote that cannot be started again at once is tried until it can") {
  Sandbox box;
  box.write("sweep.yaml", signal_sweep(6));
  // The program that loads the plugin, which fails as often as the file says.
  box.write("worker.sh", std::string("#!/bin/sh\n"
                                     "left=$(cat \"") +
                             (box.path() / "failures").string() +
                             "\" 2>/dev/null || echo 0)\n"
                             "[ \"$left\" = 0 ] || { echo $((left - 1)) > \"" +
                             (box.path() / "failures").string() +
                             "\"; exit 7; }\n"
                             "exec " TUNE_BINARY_DIR "/bin/tune-worker \"$@\"\n");
  std::filesystem::permissions(box.path() / "worker.sh", std::filesystem::perms::owner_all);
  box.set("TUNE_WORKER", (box.path() / "worker.sh").string());
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  box.write("failures", "2");  // at once, and a second later
  const auto pids = box.processes("tune-worker");
  REQUIRE(!pids.empty());
  CHECK(kill(pids.front(), SIGKILL) == 0);
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(finished.err, "tried again in 1 s");
  CHECK(box.read("failures") == "0\n");
  check_complete(box, "results/s", 6, 8);
}

}  // namespace
}  // namespace tune
