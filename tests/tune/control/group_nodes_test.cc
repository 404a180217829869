// Trials whose ranks are on several nodes: how the controller starts them, and what it makes of
// their ends and of the loss of a node.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/refusal.h"
#include "tune/control/attempt_end.h"
#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::Scene;

Scene::Options of_two_nodes(std::int64_t num_samples = 1) {
  Scene::Options options;
  options.num_samples = num_samples;
  options.cpus = 2;
  options.request = to_request({.cpu = 4, .ranks = 4});
  options.nodes_may_join = true;
  return options;
}

struct Groups : Scene {
  explicit Groups(Options options = of_two_nodes()) : Scene(std::move(options)) {
    join({0});
    join({1});
  }
  void meet(std::vector<std::string> addresses = {"10.0.0.1:7"}) {
    give(FromAgent{{0}, GroupMeets{{0}, controller_.trials()[0].attempt, std::move(addresses)}});
  }
  void end_on(AgentNumber agent, Outcome outcome, bool is_of_node = false) {
    AttemptEnded ended;
    ended.trial = {0};
    ended.attempt = controller_.trials()[0].attempt;
    ended.outcome = outcome;
    ended.is_of_node = is_of_node;
    give(FromAgent{agent, ended});
  }
  std::int64_t cpus_used() const { return controller_.placer().cpu_units_used() / kUnit; }
  std::uint32_t failures() const { return controller_.trials()[0].failures; }
};

TEST_CASE("the lead is launched first, and the others when it listens") {
  Groups scene;
  const auto lead = scene.take<Launch>();
  REQUIRE(lead.size() == 1);
  CHECK(lead[0].hosts == std::vector<std::string>{"node", "node"});
  CHECK(lead[0].node == 0);
  CHECK(lead[0].local_ranks() == 2);
  CHECK(lead[0].cpu_units == 4 * kUnit);
  CHECK(scene.cpus_used() == 4);
  scene.give(FromAgent{{1}, GroupMeets{{0}, {1}, {"10.0.0.2:7"}}});  // it does not lead
  scene.give(FromAgent{{0}, GroupMeets{{0}, {9}, {"10.0.0.2:7"}}});  // nor of this attempt
  CHECK(scene.take<Launch>().empty());
  scene.meet();
  const auto other = scene.take<Launch>();
  REQUIRE(other.size() == 1);
  CHECK(other[0].node == 1);
  CHECK(other[0].lead == "10.0.0.1:7");
  CHECK(other[0].first_rank() == 2);
  CHECK(other[0].seed == lead[0].seed);
}

TEST_CASE("a group is over when its ranks are gone on every node, whichever says so first") {
  for (const bool lead_first : {true, false}) {
    CAPTURE(lead_first);
    Groups scene;
    scene.meet();
    scene.give_report(0, 1, 0.5, false, true);
    scene.end_on({lead_first ? 0u : 1u}, Outcome::kCompleted);
    CHECK(scene.status(0) == TrialStatus::kRunning);
    CHECK(scene.cpus_used() == 2);
    scene.end_on({lead_first ? 1u : 0u}, Outcome::kCompleted);
    CHECK(scene.status(0) == TrialStatus::kTerminated);
    CHECK(scene.cpus_used() == 0);
    CHECK(scene.controller_.phase() == Phase::kFinished);
  }
}

TEST_CASE("each node of a group gives its place back by itself, and the group ends as before") {
  Groups scene(of_two_nodes(2));
  scene.meet();
  scene.take<Launch>();
  const PlaceFree free{{0}, {1}};
  scene.give(FromAgent{{1}, free});
  CHECK(scene.cpus_used() == 2);
  CHECK(scene.take<Launch>().empty());  // of two nodes as well
  scene.give(FromAgent{{0}, free});
  CHECK(scene.take<Launch>().size() == 1);
  CHECK(scene.cpus_used() == 4);
  CHECK(scene.status(0) == TrialStatus::kRunning);
  scene.end_on({1}, Outcome::kCompleted);
  scene.end_on({0}, Outcome::kCompleted);
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  CHECK(scene.cpus_used() == 4);
}

TEST_CASE("only the lead speaks for the trial") {
  Groups scene;
  scene.meet();
  Reported report = scene.report(0, 1, 0.5);
  scene.give(FromAgent{{1}, report});
  CHECK(scene.results_.empty());
  scene.give(FromAgent{{0}, report});
  CHECK(scene.results_.size() == 1);
}

TEST_CASE(
    "the loss of either node is no failure, and the other's ranks are gone before it goes on") {
  for (const std::uint32_t lost : {0u, 1u}) {
    CAPTURE(lost);
    Groups scene(of_two_nodes());
    scene.meet();
    scene.give_report(0, 1, 0.5);
    scene.saved(0, 1);
    scene.take<Launch>();
    scene.give(AgentLost{{lost}, "it has said nothing for 60 s"});
    const auto kills = scene.take<KillAttempt>();
    CHECK(kills.size() == 1);
    CHECK(scene.status(0) == TrialStatus::kRunning);
    scene.join({2});
    CHECK(scene.take<Launch>().empty());  // ranks of it still run
    scene.end_on({1 - lost}, Outcome::kLost, true);
    CHECK(scene.failures() == 0);
    const auto again = scene.take<Launch>();
    REQUIRE(again.size() == 1);
    CHECK(again[0].attempt == AttemptNumber{2});
    CHECK(again[0].restore_iteration == 1);
  }
}

TEST_CASE("a node that cannot begin its part ends the attempt on the lead as well") {
  Groups scene;
  scene.meet();
  scene.take<Launch>();
  scene.end_on({1}, Outcome::kLost, true);
  CHECK(scene.take<KillAttempt>().size() == 1);
  CHECK(scene.status(0) == TrialStatus::kRunning);
  scene.end_on({0}, Outcome::kLost, true);
  CHECK(scene.failures() == 0);
  CHECK(scene.take<Launch>().size() == 1);
}

TEST_CASE("of two nodes that did not meet twice the later one takes no part in groups") {
  Groups scene;
  const auto miss = [&](std::uint32_t attempt, bool lead_says_so) {
    scene.meet();
    AttemptEnded ended;
    ended.trial = {0};
    ended.attempt = {attempt};
    ended.outcome = Outcome::kLost;
    ended.cause = "node node is lost: it did not link at 10.0.0.1:7";
    ended.is_of_node = true;
    ended.unlinked = 1;
    scene.give(FromAgent{{lead_says_so ? 0u : 1u}, ended});
    scene.give(FromAgent{{lead_says_so ? 1u : 0u}, ended});  // that counts once
    CHECK(scene.failures() == 0);
  };
  scene.notices_.clear();
  miss(1, true);
  CHECK(scene.status(0) == TrialStatus::kRunning);  // again
  CHECK(scene.notices_.empty());
  miss(2, false);
  CHECK(scene.status(0) == TrialStatus::kPending);
  REQUIRE(scene.notices_.size() == 2);
  CHECK(scene.notices_[0] ==
        "node node takes no part in groups over several nodes any more: for the second time node "
        "node is lost: it did not link at 10.0.0.1:7");
  CHECK_HAS(scene.notices_[1], "no node could hold a trial: ");
  scene.take<Launch>();
  scene.join({2});
  CHECK(scene.take<Launch>().size() == 1);  // with the other one
  CHECK(scene.controller_.trials()[0].placement->agent == AgentNumber{0});
  CHECK(scene.controller_.trials()[0].placement->others.at(0).agent == AgentNumber{2});
}

TEST_CASE("a trial that was told to pause when a node was lost can still pause later") {
  for (const bool is_of_node : {true, false}) {
    CAPTURE(is_of_node);
    Trial trial;
    trial.verdict = StopKind::kPause;
    trial.judged = 3;
    trial.last = Reported{};
    trial.last->iteration = 3;
    CHECK(ending_of(trial, Outcome::kLost, Leaving::kNo, is_of_node) ==
          (is_of_node ? Ending::kLost : Ending::kCannotPause));
  }
}

TEST_CASE("a failure is the trial's own, once, on however many nodes it was") {
  auto options = of_two_nodes();
  options.max_failures = 1;
  Groups scene(options);
  scene.meet();
  scene.end_on({1}, Outcome::kCompleted);
  scene.end_on({0}, Outcome::kException);
  CHECK(scene.failures() == 1);
  CHECK(scene.status(0) == TrialStatus::kRunning);
  scene.meet();
  scene.end_on({0}, Outcome::kException);
  CHECK(scene.take<KillAttempt>().size() == 1);  // on the other node
  scene.end_on({1}, Outcome::kLost, true);
  CHECK(scene.failures() == 2);
  CHECK(scene.status(0) == TrialStatus::kError);
}

// Two nodes that do not see the experiment's folder.
void join_far(Scene& scene) {
  for (const std::uint32_t agent : {0u, 1u}) {
    AgentHello hello;
    hello.hostname = "far";
    hello.cpu_units = 2 * kUnit;
    hello.joined = true;
    scene.give(FromAgent{{agent}, hello});
    ZygoteReady ready;
    ready.trainables = {{"T", true, false}};
    ready.relays = true;
    scene.give(FromAgent{{agent}, ready});
  }
}

TEST_CASE("nodes that do not see the experiment's folder hold groups as others do") {
  Scene scene(of_two_nodes());
  join_far(scene);
  CHECK(scene.take<Launch>().size() == 1);
  CHECK(std::ranges::none_of(scene.notices_, [](const std::string& notice) {
    return notice.find("takes no part") != std::string::npos;
  }));
}

TEST_CASE("under a driver of before they took no part, and its journal gives that state") {
  Scene scene(of_two_nodes());
  DriverStarted before;
  before.epoch = 2;
  before.num_samples = 1;
  before.nodes_may_join = true;
  before.gathers_parts = false;
  scene.give(before);
  join_far(scene);
  CHECK(scene.take<Launch>().empty());
  CHECK(std::ranges::any_of(scene.notices_, [](const std::string& notice) {
    return notice.find("it takes no part in groups over several nodes") != std::string::npos;
  }));
}

TEST_CASE("a driver of before did not spread groups: its journal gives the state that it had") {
  Scene scene(of_two_nodes());
  DriverStarted before;
  before.epoch = 2;
  before.num_samples = 1;
  before.nodes_may_join = true;
  before.spreads_groups = false;
  scene.give(before);
  scene.join({0});
  scene.join({1});
  CHECK(scene.take<Launch>().empty());
  CHECK(scene.controller_.placer().cpu_units_used() == 0);
}

}  // namespace
}  // namespace tune
