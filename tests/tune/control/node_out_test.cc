// Nodes that start no more trials, and those whose agents leave.
#include <doctest/doctest.h>

#include <algorithm>

#include "tune/control/scene.h"

namespace tune::testing {
namespace {

constexpr AgentNumber kFirst{0};
constexpr AgentNumber kSecond{1};
const NodeOut kOut{"the process that starts workers died"};

TEST_CASE("a node that is out keeps what runs there and gets nothing more") {
  Scene scene({.num_samples = 3, .cpus = 1});
  scene.join(kFirst);
  CHECK(scene.take<Launch>().size() == 1);
  scene.give(FromAgent{kFirst, kOut});
  scene.give(FromAgent{kFirst, kOut});  // told once
  CHECK(std::ranges::count(scene.notices_, "node node starts no more trials: " + kOut.cause) == 1);
  CHECK(scene.status(0) == TrialStatus::kRunning);
  scene.join(kSecond);
  CHECK(scene.take<Launch>().size() == 1);
  scene.end(0, Outcome::kCompleted);
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  CHECK(scene.take<Launch>().empty());  // the first node has room
  CHECK(scene.controller_.phase() == Phase::kRunning);
}

TEST_CASE("when no node is left that starts trials the experiment can be resumed") {
  Scene scene({.num_samples = 3, .cpus = 1});
  scene.join(kFirst);
  scene.give(FromAgent{kFirst, kOut});
  CHECK(scene.controller_.phase() == Phase::kRunning);  // one still runs
  scene.end(0, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kInterrupted);
  CHECK(scene.controller_.failure() ==
        "running trials: no node is left that could start one; node node: " + kOut.cause);
  CHECK(scene.controller_.trials().size() == 1);  // the others were not drawn
  scene.start();
  CHECK(scene.controller_.failure().empty());
  scene.take<Launch>();
  scene.join({2});
  CHECK(scene.take<Launch>().size() == 1);
}

TEST_CASE("an experiment that has nothing left to do is finished, also with every node out") {
  Scene scene({.num_samples = 1, .cpus = 1});
  scene.join(kFirst);
  scene.give(FromAgent{kFirst, kOut});
  scene.end(0, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kFinished);
}

TEST_CASE("a trial that its node paused to leave goes on elsewhere from its checkpoint") {
  Scene scene({.num_samples = 1, .cpus = 1});
  scene.join(kFirst);
  scene.join(kSecond);
  scene.give_report(0, 4, 0.5);
  scene.take<Launch>();
  scene.give(FromAgent{kFirst, kOut});
  scene.saved(0, 4);
  scene.end(0, Outcome::kPaused);
  const auto again = scene.take<Launch>();
  REQUIRE(again.size() == 1);
  CHECK(again[0].restore_iteration == 4);
  CHECK(scene.controller_.trials()[0].placement->agent.value == 1);
  CHECK(scene.controller_.trials()[0].failures == 0);
}

TEST_CASE("a node that is out before it is ready starts nothing") {
  Scene scene({.num_samples = 1, .cpus = 1});
  AgentHello hello;
  hello.hostname = "early";
  hello.cpu_units = kUnit;
  scene.give(FromAgent{kFirst, hello});
  scene.give(FromAgent{kFirst, kOut});
  ZygoteReady ready;
  ready.trainables = {{"T", true, false}};
  scene.give(FromAgent{kFirst, ready});
  CHECK(scene.take<Launch>().empty());
  CHECK(scene.controller_.phase() == Phase::kInterrupted);
}

TEST_CASE("events of nodes that are not there change nothing") {
  Scene scene({.num_samples = 1});
  scene.give(FromAgent{{7}, kOut});
  CHECK(scene.notices_.empty());
  scene.join(kFirst);
  CHECK(scene.take<Launch>().size() == 1);
}

}  // namespace
}  // namespace tune::testing
