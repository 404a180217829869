// Sweeps over several hosts, as network namespaces of this machine, that share no folder.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/hosts.h"
#include "core/refusal.h"
#include "process/joinable.h"

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
    std::vector<fs::path> others;
    for (const Sandbox& box : boxes) {
      if (&box != &boxes[static_cast<std::size_t>(host)]) others.push_back(box.path());
    }
    return std::unique_ptr<Running>(new Running(
        boxes[static_cast<std::size_t>(host)].start(hosts.on(host, arguments, others))));
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
    box(host).set("TUNE_JOIN", lines_of(start(0, token)->wait().out).at(0));
    return start(host, {"agent", "--cpus", "1"});
  }
  std::size_t count_events(int host, const std::string& what) {
    return count_of(box(host).read("results/s/events.jsonl"), what);
  }

  Hosts hosts;
  std::vector<Sandbox> boxes;
};

const std::string kSweep = joinable_sweep(24, 100, "lease_s: 3\npatience_s: 20\n");

void check_as_calm(const Sandbox& box) {
  check_complete(box, "results/s", 24, 8);
  Sandbox calm;
  calm.write("sweep.yaml", kSweep);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  CHECK(lasting_table(box, "results/s") == lasting_table(calm, "results/s"));
}

TEST_CASE("hosts that are killed, cut off and mended give the table of a calm run") {
  if (Hosts::are_missing()) return;
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
  cluster.hosts.cut(2);
  REQUIRE(Sandbox::eventually([&] { return cluster.count_events(0, "\"node_left\"") == 2; }));
  auto another = cluster.agent(1);
  cluster.hosts.mend(2);
  const Finished finished = driver->wait(seconds(100));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  CHECK(another->wait(seconds(60)).code == 0);
  const Finished back = cut->wait(seconds(60));
  INFO(back.err);
  CHECK(back.code == 0);
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
  CHECK_HAS(refused.err, "no interface or address eth0; it has lo (127.0.0.1), eth3 (10.93.0.4), "
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

}  // namespace
}  // namespace tune
