// Nodes that join and leave while trials run.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/refusal.h"
#include "tune/control/scene.h"

namespace tune::testing {
namespace {

constexpr AgentNumber kOwn{0};
constexpr AgentNumber kJoined{1};

AgentHello hello_of(const char* hostname, std::vector<GpuInfo> gpus = {}) {
  AgentHello hello;
  hello.hostname = hostname;
  hello.cpu_units = 4 * kUnit;
  hello.gpus = std::move(gpus);
  hello.joined = true;
  return hello;
}

void load(Scene& scene, AgentNumber agent, const std::string& error = {}) {
  ZygoteReady ready;
  ready.trainables = {{"T", true, false}};
  ready.error = error;
  scene.give(FromAgent{agent, ready});
}

bool was_told(const Scene& scene, const std::string& part) {
  return std::ranges::any_of(scene.notices_,
                             [&](const std::string& text) { return has(text, part); });
}

TEST_CASE("where nodes may join, trials wait for one when the last has left, and say so") {
  Scene scene({.num_samples = 2, .cpus = 1, .nodes_may_join = true});
  scene.join(kOwn);
  CHECK(scene.take<Launch>().size() == 1);
  scene.give(AgentLost{kOwn, "it has said nothing for 60 s"});
  CHECK(scene.controller_.phase() == Phase::kRunning);
  CHECK(was_told(scene, "no node is there: trials wait for one to join"));
  CHECK(scene.controller_.trials()[0].failures == 0);
  scene.give(FromAgent{kJoined, hello_of("late")});
  load(scene, kJoined);
  const auto launched = scene.take<Launch>();
  REQUIRE(launched.size() == 2);  // the lost one first
  CHECK(launched[0].trial == TrialNumber{0});
  CHECK(launched[0].attempt == AttemptNumber{2});
}

TEST_CASE("where nodes may join, those that are out do not end the experiment") {
  Scene scene({.num_samples = 2, .cpus = 1, .nodes_may_join = true});
  scene.join(kOwn);
  scene.give(FromAgent{kOwn, NodeOut{"alice drains it"}});
  scene.end(0, Outcome::kPaused);
  CHECK(scene.controller_.phase() == Phase::kRunning);
  CHECK(was_told(scene, "node node: alice drains it: trials wait for a node to join"));
  CHECK(scene.status(0) == TrialStatus::kPending);
  CHECK(scene.controller_.trials()[0].failures == 0);
  Scene alone({.num_samples = 2, .cpus = 1});  // elsewhere it does
  alone.join(kOwn);
  alone.give(FromAgent{kOwn, NodeOut{"alice drains it"}});
  alone.end(0, Outcome::kPaused);
  CHECK(alone.controller_.phase() == Phase::kInterrupted);
}

TEST_CASE("a node that says it is gone has left: no process of it is waited for") {
  Scene scene({.num_samples = 8, .cpus = 1, .nodes_may_join = true});
  scene.join(kOwn);
  scene.give(FromAgent{kJoined, hello_of("late")});
  load(scene, kJoined);
  CHECK(scene.take<Launch>().size() == 5);
  scene.give(FromAgent{kJoined, NodeOut{"its time ends in 120 s", true}});
  CHECK(scene.story_.back() == "late left: its time ends in 120 s");
  CHECK_FALSE(was_told(scene, "lost"));
  CHECK(scene.controller_.nodes().all() == std::vector<AgentNumber>{kOwn});
  scene.give(FromAgent{kJoined, NodeOut{"its time ends in 120 s", true}});  // no more
  // A trial whose end it had not told goes on elsewhere, and has not failed.
  CHECK(scene.controller_.counts()[static_cast<std::size_t>(TrialStatus::kRunning)] == 1);
  scene.end(0, Outcome::kCompleted);
  CHECK(scene.take<Launch>().at(0).attempt == AttemptNumber{2});
}

TEST_CASE("what a lost machine saved meanwhile is removed when it is known to be gone") {
  Scene scene({.num_samples = 1, .cpus = 1, .nodes_may_join = true});
  scene.give(FromAgent{kOwn, hello_of("far")});
  load(scene, kOwn);
  scene.give(AgentLost{kOwn, "it has said nothing for 60 s"});
  CHECK(scene.unsettled_.size() == 1);  // what it had saved by then
  scene.give(FromAgent{kJoined, hello_of("near")});
  load(scene, kJoined);
  CHECK(scene.controller_.trials()[0].attempt == AttemptNumber{2});
  CHECK(scene.unsettled_.empty());
  scene.give(FromAgent{kOwn, NodeOut{"it was not heard for so long", true}});
  CHECK(scene.unsettled_ ==
        std::map<TrialNumber, AttemptNumber>{{TrialNumber{0}, AttemptNumber{1}}});
  scene.give(FromAgent{kOwn, NodeOut{"again", true}});
  CHECK(scene.unsettled_.empty());
  CHECK(scene.status(0) == TrialStatus::kRunning);
}

TEST_CASE("what a lost machine saved for a trial that is over goes when the next driver begins") {
  Scene scene({.num_samples = 1, .cpus = 1, .nodes_may_join = true});
  scene.give(FromAgent{kOwn, hello_of("far")});
  load(scene, kOwn);
  scene.give(AgentLost{kOwn, "it has said nothing for 60 s"});
  scene.give(FromAgent{kJoined, hello_of("near")});
  load(scene, kJoined);
  scene.give(AgentLost{kJoined, "it has said nothing for 60 s"});
  scene.start();
  CHECK(scene.unsettled_ ==
        std::map<TrialNumber, AttemptNumber>{{TrialNumber{0}, AttemptNumber{2}}});
  scene.start();
  CHECK(scene.unsettled_.empty());
}

TEST_CASE("a node that joined and cannot load the trainable is left out, and nothing else") {
  Scene scene({.num_samples = 3, .cpus = 1, .nodes_may_join = true});
  scene.join(kOwn);
  scene.give(FromAgent{kJoined, hello_of("other")});
  load(scene, kJoined, "cannot open /p.so");
  CHECK(scene.controller_.phase() == Phase::kRunning);
  CHECK(was_told(scene, "node other takes no part: "));
  const auto told = scene.take<Shutdown>();
  REQUIRE(told.size() == 1);
  CHECK_HAS(told[0].cause, "cannot open /p.so");
  CHECK(scene.take<Launch>().size() == 1);  // on the driver's own
  Scene own({.num_samples = 3, .nodes_may_join = true});
  AgentHello hello = hello_of("node");
  hello.joined = false;
  own.give(FromAgent{kOwn, hello});
  load(own, kOwn, "cannot open /p.so");
  CHECK(own.controller_.phase() == Phase::kFailed);
  Scene stays({.num_samples = 3, .nodes_may_join = true});
  hello.joined = hello.own = true;
  stays.give(FromAgent{kOwn, hello});
  load(stays, kOwn, "cannot open /p.so");
  CHECK(stays.controller_.phase() == Phase::kFailed);
}

TEST_CASE("a driver's own node that cannot load the trainable is left out where others can") {
  for (const bool stays : {false, true}) {
    CAPTURE(stays);
    Scene scene({.num_samples = 1, .nodes_may_join = true});
    AgentHello own = hello_of("login");
    own.joined = own.own = stays;
    scene.give(FromAgent{kOwn, own});
    scene.give(FromAgent{kJoined, hello_of("node")});
    load(scene, kJoined);
    CHECK(scene.take<Launch>().size() == 1);
    load(scene, kOwn, "cannot open libcuda.so");
    CHECK(scene.controller_.phase() == Phase::kRunning);
    CHECK(was_told(scene, "node login takes no part: "));
    CHECK(scene.take<Shutdown>().size() == 1);
  }
}

TEST_CASE("a node too small for a trial is told of, and one that is larger is waited for") {
  Scene scene(
      {.num_samples = 1, .cpus = 1, .request = to_request({.cpu = 3}), .nodes_may_join = true});
  scene.join(kOwn);
  CHECK(was_told(scene, "node node can hold no trial: "));
  CHECK(was_told(scene, "no node could hold a trial: "));
  CHECK(scene.controller_.phase() == Phase::kRunning);
  scene.give(FromAgent{kJoined, hello_of("large")});
  load(scene, kJoined);
  CHECK(scene.take<Launch>().size() == 1);
}

TEST_CASE("an agent that is started again gets no GPU before its former life is known to be gone") {
  Scene scene(
      {.num_samples = 4, .cpus = 1, .request = to_request({.gpu = 1}), .nodes_may_join = true});
  const std::vector<GpuInfo> gpus = {{"0", "H200", 0, "GPU-1"}, {"1", "H200", 0, "GPU-2"}};
  scene.give(FromAgent{kOwn, hello_of("n", gpus)});
  load(scene, kOwn);
  CHECK(scene.take<Launch>().size() == 2);
  scene.give(FromAgent{kJoined, hello_of("n", gpus)});
  load(scene, kJoined);
  CHECK(scene.take<Launch>().empty());
  CHECK(was_told(scene, "node n waits: its GPUs are promised to process 0 of n"));
  scene.give(FromAgent{{2}, hello_of("m", {{"0", "H200", 0, "GPU-3"}})});
  load(scene, {2});
  CHECK(scene.take<Launch>().size() == 1);  // another machine's
  scene.give(AgentLost{kOwn, "it has said nothing for 60 s"});
  CHECK(scene.take<Launch>().size() == 2);
}

}  // namespace
}  // namespace tune::testing
