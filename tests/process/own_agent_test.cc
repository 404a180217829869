// The agent of a driver's own machine, where it outlives the driver: the driver is killed and comes
// back.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "process/gated.h"
#include "tune/results/experiment_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// Two trials at a time. No lease is over within a test.
const std::string kStays = "patience_s: 600\nlease_s: 600\n";

struct Alone {
  explicit Alone(const std::string& text) {
    box.write("sweep.yaml", text);
    start({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  }
  void start(std::vector<std::string> command) {
    run.reset(new Running(box.start_tune(std::move(command))));
  }
  void resume() { start({"resume", "results/s"}); }
  void await_gate(std::size_t trials = 2) const {
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 14 * trials); }));
  }
  void kill_driver() {
    run->signal(SIGKILL);
    run->wait();
  }
  pid_t agent() const { return parse_json(box.read(sign()), "own").get<int>("pid"); }
  std::string sign() const {
    for (const auto& entry : fs::directory_iterator(box.path() / "results/s/nodes")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("own-")) return "results/s/nodes/" + name;
    }
    return {};
  }
  bool lives(pid_t pid) const { return std::ranges::count(box.processes(), pid) == 1; }
  std::set<pid_t> workers() const {
    std::vector<pid_t> all = box.processes("tune-worker");
    if (!all.empty()) all.erase(all.begin());  // the oldest forks the others
    return {all.begin(), all.end()};
  }
  Finished finish(std::size_t trials) {
    Finished finished = run->wait(seconds(100));
    INFO(finished.err);
    CHECK(finished.code == 0);
    check_complete(box, "results/s", trials, kGatedSteps);
    check_nothing_left(box, "results/s");
    return finished;
  }

  Sandbox box;
  std::unique_ptr<Running> run;
};

TEST_CASE("trials go on while their driver is killed, twice, and the next driver has them back") {
  Alone sweep(gated_sweep(4, kStays));
  sweep.await_gate();
  const pid_t agent = sweep.agent();
  const std::set<pid_t> workers = sweep.workers();
  CHECK(workers.size() == 2);
  sweep.kill_driver();
  CHECK(sweep.lives(agent));
  // Its agent does not hold the experiment.
  CHECK(Sandbox::eventually([&] { return !is_live(sweep.box.path() / "results/s"); }));
  const std::string goes_on = "its trials here go on under process " + std::to_string(agent);
  CHECK_HAS(sweep.box.tune({"status", "results/s"}).err, goes_on);
  CHECK_HAS(sweep.box.tune({"nodes", "results/s"}).err, goes_on);
  sweep.resume();
  CHECK(Sandbox::eventually([&] { return count_events(sweep.box, "node_returned") == 1; }));
  CHECK(sweep.box.processes("resume").size() == 1);  // no agent was forked
  CHECK(sweep.workers() == workers);
  sweep.kill_driver();
  open_gate(sweep.box);  // they train to their ends with nobody to tell
  CHECK(Sandbox::eventually([&] { return sweep.workers().empty(); }));
  CHECK(sweep.lives(agent));
  sweep.resume();
  const Finished finished = sweep.finish(4);
  CHECK_HAS(finished.err, "the agent of the driver before this one is waited for, 2 trials run");
  CHECK_FALSE(testing::has(finished.err, "is lost"));
  std::set<int> processes;
  for (const auto& [trial, pids] : processes_of_trials(sweep.box)) {
    CHECK_MESSAGE(pids.size() == 1, trial << " has results of several processes");
    processes.insert(pids.begin(), pids.end());
  }
  for (const pid_t worker : workers) CHECK(processes.contains(worker));
  CHECK(count_events(sweep.box, "node_joined") == 1);

  Sandbox calm;
  calm.write("sweep.yaml", gated_sweep(4));
  open_gate(calm);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  CHECK(lasting_table(sweep.box, "results/s") == lasting_table(calm, "results/s"));
}

TEST_CASE("an agent that was killed as well is not waited for: another one begins") {
  for (const bool is_known : {true, false}) {
    CAPTURE(is_known);
    Alone sweep(gated_sweep(2, kStays));
    sweep.await_gate();
    const pid_t agent = sweep.agent();
    sweep.kill_driver();
    ::kill(agent, SIGKILL);
    open_gate(sweep.box);
    if (!is_known) fs::remove(sweep.box.path() / sweep.sign());
    sweep.resume();
    const Finished finished = sweep.finish(2);
    CHECK_HAS(finished.err, "is lost: it has ended while no driver was there");
    CHECK_FALSE(testing::has(finished.err, "ERROR"));
    for (const auto& [trial, pids] : processes_of_trials(sweep.box)) CHECK(pids.size() == 2);
  }
}

TEST_CASE("an agent whose patience is over saves and ends, and a resume goes on") {
  Alone sweep(gated_sweep(2, "patience_s: 1\n"));
  sweep.await_gate();
  sweep.kill_driver();
  open_gate(sweep.box);
  CHECK(sweep.box.is_quiet());
  CHECK_HAS(sweep.box.read("results/s/zygote.log"), "no driver was heard for 1 s");
  sweep.resume();
  sweep.finish(2);
}

TEST_CASE("a resume waits for an agent that is ending, and starts another one") {
  Alone sweep(gated_sweep(2, "patience_s: 1\nsave_grace_s: 0\n"));
  sweep.await_gate();
  const pid_t agent = sweep.agent();
  sweep.kill_driver();
  const fs::path stays =
      fs::path(parse_json(sweep.box.read(sweep.sign()), "own").get<std::string>("runtime")) /
      "stays";
  CHECK(Sandbox::eventually([&] { return !fs::exists(stays); }));
  CHECK(sweep.lives(agent));  // its trials are in a step
  sweep.resume();
  CHECK(Sandbox::eventually([&] {
    return testing::has(sweep.run->said(), "waiting for the agent of the driver before this one");
  }));
  CHECK_FALSE(sweep.run->ends_within(std::chrono::milliseconds(500)));
  open_gate(sweep.box);
  sweep.finish(2);
}

TEST_CASE("a reader of what a driver prints sees its end when it is killed") {
  Sandbox box;
  box.write("sweep.yaml", gated_sweep(2, kStays));
  const std::string tune = std::string(TUNE_BINARY_DIR) + "/bin/tune";
  Running shell = box.start({"sh", "-c", tune + " run sweep.yaml --name s --cpus 2 2>&1 | cat"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 28); }));
  const auto record = read_record(box.path() / "results/s");
  REQUIRE(record.has_value());
  ::kill(static_cast<pid_t>(record->driver_pid), SIGKILL);
  CHECK(shell.wait(seconds(30)).code == 0);
  CHECK(box.processes("tune-worker").size() == 3);  // and the trials go on
}

TEST_CASE("a signal to the driver ends its agent as well") {
  for (const int signals : {1, 2}) {
    CAPTURE(signals);
    Alone sweep(gated_sweep(2, kStays + (signals == 1 ? "save_grace_s: 1\n" : "")));
    sweep.await_gate();
    sweep.run->signal(SIGINT);
    if (signals == 2) {
      CHECK_FALSE(sweep.run->ends_within(std::chrono::milliseconds(300)));
      sweep.run->signal(SIGINT);
    }
    CHECK(sweep.run->wait().code == 130);
    check_nothing_left(sweep.box, "results/s");
    open_gate(sweep.box);
    sweep.resume();
    sweep.finish(2);
  }
}

TEST_CASE("an agent is told to end alone: its trials save, and the run can be resumed") {
  Alone sweep(gated_sweep(2, kStays));
  sweep.await_gate();
  ::kill(sweep.agent(), SIGTERM);
  const auto is_told = [&] {
    return testing::has(sweep.box.read("results/s/events.jsonl"), "starts no more trials");
  };
  REQUIRE(Sandbox::eventually(is_told));
  open_gate(sweep.box);
  const Finished ended = sweep.run->wait();
  CHECK(ended.code == 3);
  CHECK_HAS(ended.err, "tune resume results/s");
  sweep.resume();
  sweep.finish(2);
}

TEST_CASE("a driver that loses its store leaves its agent to the next one") {
  Sandbox box;
  const std::string socket = (box.path() / "tmp/r").string();
  const auto start_store = [&] {
    std::unique_ptr<Running> server(new Running(
        box.start({"redis-server", "--port", "0", "--unixsocket", socket, "--appendonly", "yes",
                   "--appendfsync", "always", "--dir", box.path()})));
    REQUIRE(Sandbox::eventually([&] { return fs::exists(socket); }));
    return server;
  };
  auto store = start_store();
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: " +
                                          std::to_string(lasting(100)) + "}",
                                .num_samples = 2,
                                .rest = "stop: {training_iteration: 40}\nstore_patience_s: 1\n" +
                                        kStays + "store: unix://" + socket + "\n"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 4); }));
  store.reset();
  const Finished ended = run.wait();
  CHECK(ended.code == 3);
  CHECK_HAS(ended.err, "and its trials go on meanwhile, resume it with: tune resume results/s");
  CHECK(box.processes("tune-worker").size() == 3);
  fs::remove(socket);
  store = start_store();
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", 2, 40);
  for (const auto& [trial, pids] : processes_of_trials(box)) CHECK(pids.size() == 1);
}

TEST_CASE("a new experiment in the place of one whose agent lives ends that agent first") {
  Alone sweep(gated_sweep(2, kStays + "save_grace_s: 1\n"));
  sweep.await_gate();
  const pid_t agent = sweep.agent();
  sweep.kill_driver();
  open_gate(sweep.box);
  sweep.start({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--fresh"});
  sweep.finish(2);
  CHECK_FALSE(sweep.lives(agent));
}

TEST_CASE("an agent whose experiment is removed ends") {
  Alone sweep(gated_sweep(2, kStays));
  sweep.await_gate();
  sweep.kill_driver();
  fs::remove_all(sweep.box.path() / "results");
  CHECK(sweep.box.is_quiet());
}

TEST_CASE("a program's trials go on in the processes that were forked of it") {
  Sandbox box;
  box.set("PAUSE_MS", "400");
  const std::string program = std::string(TUNE_BINARY_DIR) + "/tests/own_parts";
  {
    Running run =
        box.start({program, "--cpus", "2", "--quiet", "--set", "patience_s=600", "--name", "s"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
    run.signal(SIGKILL);
    run.wait();
  }
  const std::size_t left = box.processes("own_parts").size();
  CHECK(left >= 2);  // agent and zygote
  const Finished resumed =
      box.run({std::string(TUNE_BINARY_DIR) + "/bin/tune", "resume", "results/s", "--quiet"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_HAS(resumed.out, "1 4 2 1 ");
  CHECK(count_events(box, "node_joined") == 1);
  CHECK(count_events(box, "node_returned") == 1);
  check_nothing_left(box, "results/s");
}

// An engine that starts nobody.
const std::string kPool =
    "pool: {engine: command, local: true, max: 1, node: {cpu: 1}, start: [echo, '1'], "
    "list: ['true'], stop: ['true']}\n";

TEST_CASE("where the driver of a pool takes trials, its agent outlives it as well") {
  Alone sweep(gated_sweep(2, kPool + "lease_s: 600\n"));
  sweep.await_gate();
  const std::set<pid_t> workers = sweep.workers();
  sweep.kill_driver();
  sweep.resume();
  CHECK(Sandbox::eventually([&] { return count_events(sweep.box, "node_returned") == 1; }));
  CHECK(sweep.workers() == workers);
  open_gate(sweep.box);
  sweep.finish(2);
  for (const auto& [trial, pids] : processes_of_trials(sweep.box)) CHECK(pids.size() == 1);
}

TEST_CASE("a patience of no time is refused") {
  Sandbox box;
  for (const char* patience : {"0", "-1", "soon"}) {
    box.write("sweep.yaml", gated_sweep(1, std::string("patience_s: ") + patience + "\n"));
    const Finished refused = box.tune({"run", "sweep.yaml"});
    CHECK(refused.code == 2);
    CHECK_HAS(refused.err, "patience_s");
  }
}

}  // namespace
}  // namespace tune
