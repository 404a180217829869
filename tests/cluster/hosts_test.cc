// Sweeps over several hosts, as network namespaces of this machine, that share no folder.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/hosts.h"
#include "core/refusal.h"
#include "process/joinable.h"
#include "skip.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr const char* kProgram = TUNE_BINARY_DIR "/bin/tune";

// The folder of each host is that of its sandbox; it sees none of the others'.
struct Cluster {
  explicit Cluster(int count) : hosts(count), boxes(static_cast<std::size_t>(count)) {}

  std::unique_ptr<Running> start(int host, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), kProgram);
    return execute(host, arguments);
  }
  std::unique_ptr<Running> execute(int host, const std::vector<std::string>& command) const {
    std::vector<fs::path> others;
    for (const Sandbox& box : boxes) {
      if (&box != &boxes[static_cast<std::size_t>(host)]) others.push_back(box.path());
    }
    return std::unique_ptr<Running>(
        new Running(boxes[static_cast<std::size_t>(host)].start(hosts.on(host, command, others))));
  }
  Sandbox& box(int host) { return boxes[static_cast<std::size_t>(host)]; }
  // Tells the machines where the driver is, as a person would.
  void hand_token(int from, const std::vector<int>& to) {
    REQUIRE(
        Sandbox::eventually([&] { return fs::exists(box(from).path() / "results/s/nodes/join"); }));
    const std::string token = box(from).read("results/s/nodes/join");
    for (const int host : to) {
      box(host).write("token.new", token);
      const fs::path next = box(host).path() / "token.new";
      fs::permissions(next, fs::perms::owner_read | fs::perms::owner_write);
      fs::rename(next, box(host).path() / "token");
    }
  }
  std::unique_ptr<Running> agent(int host) const {
    return start(host, {"agent", "--cpus", "1", "--join-file", "token"});
  }
  // It has no file to find another driver by: its token names all places where there will be one.
  std::unique_ptr<Running> pasted_agent(int host, const std::vector<std::string>& addresses) {
    std::vector<std::string> token = {"token", "results/s"};
    for (const std::string& address : addresses) {
      token.insert(token.end(), {"--address", address});
    }
    const Finished told = start(0, token)->wait();
    INFO(told.err);
    REQUIRE(told.code == 0);
    box(host).set("TUNE_JOIN", lines_of(told.out).at(0));
    return start(host, {"agent", "--cpus", "1"});
  }
  std::size_t count_events(int host, const std::string& what) {
    return count_of(box(host).read("results/s/events.jsonl"), what);
  }

  Hosts hosts;
  std::vector<Sandbox> boxes;
};

const std::string kSweep = joinable_sweep(24, 100, "lease_s: 3\npatience_s: 20\n");

void check_as_calm(const Sandbox& box, const std::string& sweep = kSweep, std::size_t trials = 24) {
  check_complete(box, "results/s", trials, 8);
  Sandbox calm;
  calm.write("sweep.yaml", sweep);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "4"}).code == 0);
  CHECK(lasting_table(box, "results/s") == lasting_table(calm, "results/s"));
}

// The trial of which the agent has told some results, and not all; empty: there is none now.
fs::path trial_amid(const Running& agent, const Sandbox& box) {
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    const std::size_t told =
        lines_of(box.read(fs::relative(trial, box.path()) / "result.json")).size();
    if (told < 2 || told > 4) continue;
    const fs::path process = "/proc/" + std::to_string(worker_pid(box, trial));
    const bool is_of_agent =
        fs::exists(process) &&
        testing::has(read_file(process / "status"), "PPid:\t" + std::to_string(agent.pid()) + "\n");
    if (is_of_agent) return trial;
  }
  return {};
}

// An attempt on a host that was cut off was lost, and the trial's results and checkpoint are those
// of a later one, though the host has trained on and told all when it was back.
void check_was_lost(const Sandbox& box, const fs::path& trial, pid_t lost_worker) {
  const std::string id = trial.filename();
  std::size_t lost = 0;
  for (const std::string& line : lines_of(box.read("results/s/events.jsonl"))) {
    lost += testing::has(line, "\"outcome\":\"lost\"") && testing::has(line, id);
  }
  CHECK(lost > 0);
  CHECK(worker_pid(box, trial) != lost_worker);
  CHECK(fs::exists(trial / ("checkpoint_000008-a" + std::to_string(lost + 1))));
}

TEST_CASE("hosts that are killed, cut off and mended give the table of a calm run") {
  bool hears = false;
  SUBCASE("cut off both ways") {}
  SUBCASE("cut off from being heard") {
    hears = true;
  }
  if (Hosts::are_missing() || (hears && Hosts::cannot_lose())) return;
  Cluster cluster(3);
  cluster.box(0).write("sweep.yaml", kSweep);
  auto driver =
      cluster.start(0, {"run", "sweep.yaml", "--name", "s", "--cpus", "1", "--listen", "eth0"});
  cluster.hand_token(0, {1, 2});
  auto killed = cluster.agent(1);
  auto cut = cluster.agent(2);
  REQUIRE(Sandbox::eventually([&] { return cluster.count_events(0, "\"node_joined\"") == 3; }));
  // Trials of both have been stored here, over the network.
  REQUIRE(Sandbox::eventually([&] { return has_results(cluster.box(0), "results/s", 12); }));
  killed->signal(SIGKILL);
  killed->wait();
  fs::path trial;
  REQUIRE(Sandbox::eventually([&] {
    trial = trial_amid(*cut, cluster.box(0));
    return !trial.empty();
  }));
  const pid_t lost_worker = worker_pid(cluster.box(0), trial);
  hears ? cluster.hosts.mute(2) : cluster.hosts.cut(2);
  REQUIRE(Sandbox::eventually([&] { return cluster.count_events(0, "\"node_left\"") == 2; }));
  auto another = cluster.agent(1);
  hears ? cluster.hosts.unmute() : cluster.hosts.mend(2);
  const Finished finished = driver->wait(seconds(100));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  CHECK(another->wait(seconds(60)).code == 0);
  const Finished back = cut->wait(seconds(60));
  INFO(back.err);
  CHECK(back.code == 0);
  check_was_lost(cluster.box(0), trial, lost_worker);
  check_as_calm(cluster.box(0));
  for (const Sandbox& box : cluster.boxes) CHECK(box.is_quiet());
}

TEST_CASE("a driver that is killed goes on at another host, and the machines find it there") {
  if (Hosts::are_missing()) return;
  Cluster cluster(4);
  // Machines look for another driver three seconds after they have heard the last of theirs.
  cluster.box(0).write("sweep.yaml", joinable_sweep(24, 100, "lease_s: 20\npatience_s: 20\n"));
  auto driver = cluster.start(
      0, {"run", "sweep.yaml", "--name", "s", "--cpus", "1", "--listen", "eth0:7000"});
  cluster.hand_token(0, {1});
  auto first = cluster.agent(1);
  auto second = cluster.pasted_agent(2, {"10.93.0.1:7000", "10.93.0.4:7000"});
  REQUIRE(Sandbox::eventually([&] { return cluster.count_events(0, "\"node_joined\"") == 3; }));
  REQUIRE(Sandbox::eventually([&] { return has_results(cluster.box(0), "results/s", 12); }));
  driver->signal(SIGKILL);
  driver->wait();
  for (const pid_t pid : cluster.box(0).processes()) ::kill(pid, SIGKILL);  // its host is lost
  CHECK(cluster.box(0).is_quiet());  // but the machines train on
  fs::copy(cluster.box(0).path() / "results", cluster.box(3).path() / "results",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  fs::remove(cluster.box(3).path() / "results/s/nodes/join");  // of the driver that is gone
  const Finished refused = cluster.start(3, {"resume", "results/s"})->wait();
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err,
            "no interface or address eth0; it has lo (127.0.0.1), eth3 (10.93.0.4), "
            "lo (::1); on another host: tune resume results/s --listen ADDRESS[:PORT]");
  auto moved = cluster.start(3, {"resume", "results/s", "--listen", "eth3:7000"});
  cluster.hand_token(3, {1});
  const Finished finished = moved->wait(seconds(100));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  CHECK(cluster.count_events(3, "\"node_returned\"") == 2);
  for (auto* agent : {&first, &second}) {
    const Finished over = (*agent)->wait(seconds(60));
    INFO(over.err);
    CHECK(over.code == 0);
  }
  check_as_calm(cluster.box(3));
  for (const Sandbox& box : cluster.boxes) CHECK(box.is_quiet());
}

TEST_CASE("a group one of whose hosts falls silent ends on both, and goes on when it is back") {
  if (Hosts::are_missing()) return;
  Cluster cluster(2);
  cluster.box(0).write("sweep.yaml",
                       joinable_sweep(1, 200,
                                      "resources_per_trial: {cpu: 2, ranks: 2}\nlease_s: 20\n"
                                      "patience_s: 60\ngroup_timeout_s: 4\n"));
  auto driver =
      cluster.start(0, {"run", "sweep.yaml", "--name", "s", "--cpus", "1", "--listen", "eth0"});
  cluster.hand_token(0, {1});
  auto agent = cluster.agent(1);
  REQUIRE(Sandbox::eventually([&] { return has_results(cluster.box(0), "results/s", 2); }));
  const auto ranks = [&](int host) {  // beside the zygote
    return cluster.box(host).processes("tune-worker").size() - 1;
  };
  REQUIRE(ranks(0) == 1);
  REQUIRE(ranks(1) == 1);
  cluster.hosts.cut(1);
  // Before its lease is over.
  CHECK(Sandbox::eventually([&] { return ranks(0) == 0 && ranks(1) == 0; }, seconds(12)));
  CHECK(cluster.count_events(0, "\"node_left\"") == 0);
  cluster.hosts.mend(1);
  const Finished finished = driver->wait(seconds(100));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(agent->wait(seconds(60)).code == 0);
  check_complete(cluster.box(0), "results/s", 1, 8);
  for (const Sandbox& box : cluster.boxes) CHECK(box.is_quiet());
}

TEST_CASE("machines behind a slow network that loses packets give the table of a calm run") {
  if (Hosts::are_missing() || Hosts::cannot_lose()) return;
  const std::string python = TUNE_TEST_PYTHON;
  if (python.empty()) return testing::skip("a slow network wants python3");
  const std::string sweep =
      yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, weights_mb: 1, step_ms: " +
                      std::to_string(lasting(200)) + "}",
            .num_samples = 12,
            .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1}\nlease_s: 10\n"});
  Cluster cluster(2);
  cluster.hosts.lose(2);
  cluster.box(0).write("sweep.yaml", sweep);
  auto driver = cluster.start(
      0, {"run", "sweep.yaml", "--name", "s", "--cpus", "1", "--listen", "eth0:7000"});
  REQUIRE(
      Sandbox::eventually([&] { return !cluster.box(0).read("results/s/nodes/join").empty(); }));
  // Their only way to the driver. Checkpoints go to the port after its own.
  auto way = cluster.execute(
      1, {python, TUNE_SOURCE_DIR "/tests/cluster/delay.py", "100", "10.93.0.1", "7000", "7001"});
  std::vector<std::unique_ptr<Running>> agents;
  for (int i = 0; i < 3; ++i) agents.push_back(cluster.pasted_agent(1, {"127.0.0.1:7000"}));
  REQUIRE(Sandbox::eventually([&] { return cluster.count_events(0, "\"node_joined\"") == 4; }));
  REQUIRE(Sandbox::eventually([&] { return !trial_amid(*agents[0], cluster.box(0)).empty(); },
                              seconds(60)));
  agents[0]->signal(SIGTERM);  // its trial goes on elsewhere, from where it stood
  const Finished finished = driver->wait(seconds(100));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  for (const auto& agent : agents) {
    const Finished over = agent->wait(seconds(60));
    INFO(over.err);
    CHECK(over.code == 0);
  }
  CHECK(cluster.count_events(0, "\"node_left\"") == 1);  // none was taken for lost
  CHECK(cluster.count_events(0, "\"outcome\":\"lost\"") == 0);
  CHECK(cluster.count_events(0, "\"outcome\":\"paused\"") == 1);
  CHECK(cluster.hosts.has_lost_some());
  check_as_calm(cluster.box(0), sweep, 12);
  way->signal(SIGTERM);
  way->wait();
  for (const Sandbox& box : cluster.boxes) CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
