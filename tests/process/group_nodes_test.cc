// Groups of ranks over several nodes: the driver's own agent and agents that join, on this host,
// over loopback, each with room for a part of a group only.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <string>
#include <thread>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "process/joinable.h"

namespace tune {
namespace {

using std::chrono::seconds;

std::string group_sweep(int trials, int step_ms, const std::string& rest = "") {
  return joinable_sweep(trials, step_ms,
                        "resources_per_trial: {cpu: 2, ranks: 2}\nlease_s: 3\n" + rest);
}

// As Joinable, for trials that begin only when a second node is there.
struct TwoNodes {
  explicit TwoNodes(const std::string& text) {
    box.write("sweep.yaml", text);
    run.reset(new Running(
        box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1", "--listen", "lo"})));
    REQUIRE(Sandbox::eventually(
        [&] { return std::filesystem::exists(box.path() / "results/s/nodes/join"); }));
    box.set("TUNE_JOIN", lines_of(box.read("results/s/nodes/join")).at(0));
    // The driver's own agent leads: the one that has joined first.
    REQUIRE(Sandbox::eventually([&] {
      return testing::has(box.read("results/s/events.jsonl"), "\"node_joined\"");
    }));
  }
  std::unique_ptr<Running> agent() {
    return std::unique_ptr<Running>(new Running(box.start_tune({"agent", "--cpus", "1"})));
  }
  Finished finish() {
    Finished finished = run->wait(seconds(100));
    INFO(finished.err);
    CHECK(finished.code == 0);
    CHECK_FALSE(testing::has(finished.err, "ERROR"));
    return finished;
  }

  Sandbox box;
  std::unique_ptr<Running> run;
};

TEST_CASE("groups over two nodes give the table of groups on one") {
  const std::string text = group_sweep(3, 5);
  TwoNodes sweep(text);
  auto agent = sweep.agent();
  sweep.finish();
  CHECK(agent->wait(seconds(20)).code == 0);
  check_complete(sweep.box, "results/s", 3, 8);
  check_nothing_left(sweep.box, "results/s");

  Sandbox calm;
  calm.write("sweep.yaml", text);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  CHECK(lasting_table(sweep.box, "results/s") == lasting_table(calm, "results/s"));
}

TEST_CASE(
    "a killed node ends the group on the other within five seconds, and it goes on elsewhere") {
  TwoNodes sweep(group_sweep(1, 150));
  auto killed = sweep.agent();
  REQUIRE(Sandbox::eventually([&] { return has_results(sweep.box, "results/s", 2); }));
  const std::string began = sweep.box.read("results/s/events.jsonl");
  const pid_t rank_0 = std::stoi(began.substr(began.find("\"pid\":") + 6));
  REQUIRE(::kill(rank_0, 0) == 0);
  killed->signal(SIGKILL);
  const auto end = std::chrono::steady_clock::now() + seconds(5);
  while (::kill(rank_0, 0) == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(::kill(rank_0, 0) != 0);
  auto second = sweep.agent();
  sweep.finish();
  killed->wait();
  second->wait(seconds(20));
  check_complete(sweep.box, "results/s", 1, 8);
  check_nothing_left(sweep.box, "results/s");
  const std::string events = sweep.box.read("results/s/events.jsonl");
  CHECK_HAS(events, "is lost: its connection broke");
  CHECK_FALSE(testing::has(events, "\"event\":\"failure\""));
}

TEST_CASE("a node that is drained lets the group save, which goes on elsewhere") {
  TwoNodes sweep(group_sweep(1, 150));
  auto drained = sweep.agent();
  REQUIRE(Sandbox::eventually([&] { return has_results(sweep.box, "results/s", 2); }));
  auto second = sweep.agent();
  drained->signal(SIGTERM);
  CHECK(drained->wait(seconds(30)).code == 0);
  sweep.finish();
  second->wait(seconds(20));
  check_complete(sweep.box, "results/s", 1, 8);
  check_nothing_left(sweep.box, "results/s");
}

}  // namespace
}  // namespace tune
