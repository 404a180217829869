// Trials that go on where their checkpoint was kept.
#include <string>

#include <doctest/doctest.h>

#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::Scene;

// Two nodes with room for a trial each, which carry their checkpoints away; trial 1 was paused on
// the second of them, and both are free.
struct FarNodes : Scene {
  explicit FarNodes(bool carry = true, std::uint32_t contract = kAgentContract,
                    std::uint32_t max_failures = 0)
      : Scene({.num_samples = 2, .cpus = 1, .max_failures = max_failures, .nodes_may_join = true}) {
    if (contract != kAgentContract) {
      DriverStarted before;
      before.epoch = ++epoch_;
      before.num_samples = 2;
      before.nodes_may_join = true;
      before.agent_contract = contract;
      give(before);
    }
    for (const std::uint32_t agent : {0u, 1u}) join_far({agent}, carry, contract);
    order(OrderKind::kPause);
    give_from({1}, 1, 5);
    end_on({1}, 1, Outcome::kPaused);
    CHECK(status(1) == TrialStatus::kPaused);
  }
  void join_far(AgentNumber agent, bool carries, std::uint32_t contract) {
    AgentHello hello;
    hello.contract = contract;
    hello.hostname = "far" + std::to_string(agent.value);
    hello.cpu_units = kUnit;
    hello.joined = true;
    give(FromAgent{agent, hello});
    ZygoteReady ready;
    ready.trainables = {{"T", true, false}};
    ready.relays = carries;
    give(FromAgent{agent, ready});
  }
  void order(OrderKind kind) {
    UserOrdered event;
    event.kind = kind;
    event.trial = TrialNumber{1};
    event.user = "ada";
    give(event);
  }
  void give_from(AgentNumber agent, std::uint32_t trial, std::uint64_t iteration) {
    give(FromAgent{agent, report(trial, iteration, 0.5)});
    CheckpointSaved saved;
    saved.trial = TrialNumber{trial};
    saved.attempt = controller_.trials()[trial].attempt;
    saved.iteration = iteration;
    give(FromAgent{agent, saved});
  }
  void end_on(AgentNumber agent, std::uint32_t trial, Outcome outcome) {
    AttemptEnded ended;
    ended.trial = TrialNumber{trial};
    ended.attempt = controller_.trials()[trial].attempt;
    ended.outcome = outcome;
    give(FromAgent{agent, ended});
  }
  // The node on which trial 1 goes on.
  std::uint32_t goes_on_at() {
    order(OrderKind::kUnpause);
    REQUIRE(status(1) == TrialStatus::kRunning);
    return controller_.trials()[1].placement->agent.value;
  }
};

TEST_CASE("a paused trial goes on where its checkpoint was kept, if there is room") {
  FarNodes scene;
  SUBCASE("both have room") {
    scene.end_on({0}, 0, Outcome::kCompleted);
    CHECK(scene.goes_on_at() == 1);
    CHECK(scene.controller_.placer().cpu_units_used() == kUnit);  // of one place alone
  }
  SUBCASE("that node is gone") {
    scene.end_on({0}, 0, Outcome::kCompleted);
    scene.give(AgentLost{{1}, "it was silent"});
    CHECK(scene.goes_on_at() == 0);
  }
}

// Trial 0 ends there; trial 1 is elsewhere.
TEST_CASE("a trial that failed is tried again where its checkpoint was kept") {
  for (const bool is_kept : {true, false}) {
    CAPTURE(is_kept);
    FarNodes scene(true, kAgentContract, 1);
    scene.order(OrderKind::kUnpause);
    const AgentNumber where = scene.controller_.trials()[1].placement->agent;
    CHECK(where == AgentNumber{1});
    scene.give_from(where, 1, 6);
    scene.end_on({0}, 0, Outcome::kCompleted);
    AttemptEnded failed;
    failed.trial = TrialNumber{1};
    failed.attempt = scene.controller_.trials()[1].attempt;
    failed.outcome = Outcome::kException;
    failed.is_kept = is_kept;
    scene.give(FromAgent{where, failed});
    REQUIRE(scene.status(1) == TrialStatus::kRunning);
    CHECK(scene.controller_.trials()[1].failures == 1);
    CHECK(scene.controller_.trials()[1].placement->agent.value == (is_kept ? 1 : 0));
  }
}

TEST_CASE("where all see the folder, and under a driver of before, nodes fill up as they did") {
  for (const bool carry : {false, true}) {
    FarNodes scene(carry, carry ? kKeepsCheckpoints - 1 : kAgentContract);
    scene.end_on({0}, 0, Outcome::kCompleted);
    CHECK(scene.goes_on_at() == 0);
  }
}

}  // namespace
}  // namespace tune
