// The controller with a pool: what it knows of allocations, and how many trials want a node.
#include <doctest/doctest.h>

#include "core/fitting.h"
#include "core/refusal.h"
#include "schedulers/asha.h"
#include "tune/control/pool_room.h"
#include "tune/control/scene.h"

namespace tune::testing {
namespace {

constexpr AgentNumber kOwnAgent{0};

AgentHello hello_of(std::uint64_t allocation, double cpus = 1) {
  AgentHello hello;
  hello.hostname = "n" + std::to_string(allocation);
  hello.cpu_units = to_units(cpus);
  hello.joined = true;
  hello.allocation = "tune-x-" + std::to_string(allocation);
  return hello;
}

void join(Scene& scene, std::uint32_t agent, const AgentHello& hello) {
  scene.give(FromAgent{AgentNumber{agent}, hello});
  ZygoteReady ready;
  ready.trainables = {{"T", true, false}};
  scene.give(FromAgent{AgentNumber{agent}, ready});
}

void request(Scene& scene, std::uint64_t number) {
  scene.give(AllocationChanged{number, AllocationState::kStarted, "7", "", ""});
}

TEST_CASE("an allocation's agent is known by its name, from its hello to its end") {
  Scene scene({.num_samples = 4, .cpus = 0, .has_pool = true});
  scene.join(kOwnAgent);
  request(scene, 1);
  CHECK(scene.controller_.wanted() == 4);
  join(scene, 1, hello_of(1));
  CHECK(scene.controller_.pool().open().at(1).took_part);
  CHECK(scene.controller_.pool().ever_took_part());
  CHECK(scene.take<Launch>().size() == 1);
  CHECK(scene.controller_.wanted() == 3);
  scene.give(AgentLost{AgentNumber{1}, "it has said nothing for 60 s"});
  CHECK(scene.controller_.pool().open().at(1).is_lost);
  CHECK(scene.controller_.wanted() == 4);
  join(scene, 2, hello_of(1));  // again, by the same allocation
  CHECK_FALSE(scene.controller_.pool().open().at(1).is_lost);
  scene.give(FromAgent{AgentNumber{2}, NodeOut{"its time ends in 120 s", true}});
  CHECK(scene.controller_.pool().open().at(1).has_left);
  scene.give(AllocationChanged{1, AllocationState::kEnded, "7", "n1", "TIMEOUT"});
  CHECK(scene.controller_.pool().open().empty());
  CHECK(scene.controller_.trials()[0].failures == 0);
}

TEST_CASE("an agent with a name of its own belongs to no allocation, whatever number it ends in") {
  Scene scene({.num_samples = 4, .cpus = 0, .has_pool = true});
  scene.join(kOwnAgent);
  request(scene, 1);
  AgentHello guest = hello_of(1);
  guest.allocation = "gpu-1";
  join(scene, 1, guest);
  const auto one = [&] { return scene.controller_.pool().open().at(1); };
  CHECK_FALSE(one().has_joined);
  CHECK_FALSE(one().took_part);
  CHECK_FALSE(scene.controller_.pool().ever_took_part());
  CHECK(pool_scene(scene.controller_, to_request({})).nodes.back().allocation == 0);
  scene.give(FromAgent{AgentNumber{1}, NodeOut{"it is idle", true}});
  CHECK_FALSE(one().has_left);
}

TEST_CASE("a pool's driver says nothing of its own machine, which runs no trials") {
  Scene scene({.num_samples = 2, .cpus = 0, .has_pool = true});
  scene.join(kOwnAgent);
  CHECK(scene.notices_.empty());
  CHECK(scene.controller_.phase() == Phase::kRunning);
}

TEST_CASE("a node that can hold no trial took no part") {
  Scene scene({.num_samples = 2, .cpus = 0, .request = to_request({.cpu = 4}), .has_pool = true});
  scene.join(kOwnAgent);
  request(scene, 1);
  join(scene, 1, hello_of(1, 2));
  CHECK(scene.controller_.pool().open().at(1).has_joined);
  CHECK_FALSE(scene.controller_.pool().open().at(1).took_part);
}

TEST_CASE("paused trials wait for a node when all of a pool have left") {
  Scene scene({.num_samples = 1,
               .cpus = 0,
               .scheduler = asha({.max_t = 9, .type = AshaType::kPromote}),
               .has_pool = true});
  scene.join(kOwnAgent);
  request(scene, 1);
  join(scene, 1, hello_of(1));
  REQUIRE(scene.take<Launch>().size() == 1);
  const AgentNumber agent{1};
  scene.give(FromAgent{agent, NodeOut{"its time ends in 120 s"}});
  scene.give(FromAgent{agent, scene.report(0, 1, 0.5, true)});
  AttemptEnded ended;
  ended.attempt = scene.controller_.trials()[0].attempt;
  ended.outcome = Outcome::kPaused;
  scene.give(FromAgent{agent, ended});
  REQUIRE(scene.status(0) == TrialStatus::kPaused);
  CHECK(scene.controller_.phase() == Phase::kRunning);
  scene.give(FromAgent{agent, NodeOut{"its time ends in 120 s", true}});
  CHECK(scene.controller_.phase() == Phase::kRunning);
  CHECK(scene.controller_.wanted() == 1);  // only a node can show whether it goes on
}

TEST_CASE("at most so many trials are wanted as may run at once") {
  Scene scene({.num_samples = 4, .cpus = 0, .has_pool = true});
  scene.join(kOwnAgent);
  DriverStarted event;
  event.epoch = 2;
  event.num_samples = -1;
  event.nodes_may_join = event.has_pool = true;
  scene.give(event);
  CHECK(scene.controller_.wanted() == Controller::kNoEnd);
  event.epoch = 3;
  event.max_concurrent_trials = 3;
  scene.give(event);
  CHECK(scene.controller_.wanted() == 3);
}

TEST_CASE("it is counted how many trials a node could hold") {
  NodeResources node{.cpu_units = 8 * kUnit, .memory_bytes = 100, .gpus = {{}, {}}};
  CHECK(trials_that_fit(node, to_request({.cpu = 2})) == 4);
  CHECK(trials_that_fit(node, to_request({.cpu = 3})) == 2);
  CHECK(trials_that_fit(node, to_request({.cpu = 9})) == 0);
  CHECK(trials_that_fit(node, to_request({.cpu = 1, .gpu = 1})) == 2);
  CHECK(trials_that_fit(node, to_request({.cpu = 1, .gpu = 0.5})) == 4);
  CHECK(trials_that_fit(node, to_request({.cpu = 2, .gpu = 2, .ranks = 2})) == 1);
  CHECK(trials_that_fit(node, to_request({.cpu = 1, .memory = MemorySize(40)})) == 2);
  CHECK(trials_that_fit(node, to_request({.cpu = 1, .gpu = 3})) == 0);
}

}  // namespace
}  // namespace tune::testing
