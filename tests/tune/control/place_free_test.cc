// Attempts whose processes are gone while their last checkpoint is still carried away.
#include <string>

#include <doctest/doctest.h>

#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::Scene;

// A node with one place, on which trial 0 runs.
struct OnePlace : Scene {
  explicit OnePlace(std::int64_t num_samples = 2)
      : Scene({.num_samples = num_samples, .cpus = 1, .max_failures = 1, .nodes_may_join = true}) {
    join();
    take<Launch>();
  }
  void frees_place(std::uint32_t trial, std::uint32_t attempt = 1, AgentNumber agent = {}) {
    give(FromAgent{agent, PlaceFree{{trial}, {attempt}}});
  }
  void end(std::uint32_t trial, Outcome outcome) {
    AttemptEnded ended;
    ended.trial = {trial};
    ended.attempt = controller_.trials()[trial].attempt;
    ended.outcome = outcome;
    give(FromAgent{{}, ended});
  }
  std::int64_t places_used() const { return controller_.placer().cpu_units_used() / kUnit; }
};

TEST_CASE("a place is another trial's while the checkpoint of the one before waits for its store") {
  OnePlace scene;
  scene.give_report(0, 1, 0.5);
  scene.frees_place(0);
  const auto next = scene.take<Launch>();
  REQUIRE(next.size() == 1);
  CHECK(next[0].trial == TrialNumber{1});
  CHECK(scene.status(0) == TrialStatus::kRunning);
  CHECK(scene.places_used() == 1);
  scene.frees_place(0);  // said again
  CHECK(scene.places_used() == 1);
  SUBCASE("it is stored") {
    scene.end(0, Outcome::kCompleted);
    CHECK(scene.status(0) == TrialStatus::kTerminated);
    CHECK(scene.places_used() == 1);
    scene.end(1, Outcome::kCompleted);
    CHECK(scene.places_used() == 0);
    CHECK(scene.controller_.phase() == Phase::kFinished);
  }
  SUBCASE("it is not, and the trial is tried again when there is room") {
    scene.end(0, Outcome::kException);
    CHECK(scene.status(0) == TrialStatus::kPending);
    CHECK(scene.take<Launch>().empty());
    scene.end(1, Outcome::kCompleted);
    CHECK(scene.take<Launch>().size() == 1);
    CHECK(scene.places_used() == 1);
  }
  SUBCASE("its node is lost") {
    scene.give(AgentLost{{}, "it has said nothing for 60 s"});
    CHECK(scene.status(0) == TrialStatus::kPending);
    CHECK(scene.places_used() == 0);
  }
  SUBCASE("another driver takes over") {
    scene.start();
    CHECK(scene.status(0) == TrialStatus::kPending);
    CHECK(scene.places_used() == 0);
  }
}

TEST_CASE("nothing is free by the word of an older attempt, or of another node") {
  OnePlace scene;
  scene.frees_place(0, 2);
  scene.frees_place(0, 1, {1});
  scene.frees_place(7);
  CHECK(scene.take<Launch>().empty());
  CHECK(scene.places_used() == 1);
}

TEST_CASE("so many checkpoints wait on a node without a place, and no more") {
  OnePlace scene(100);
  for (std::uint32_t trial = 0; trial < Controller::kMostFree; ++trial) scene.frees_place(trial);
  CHECK(scene.controller_.running().size() == Controller::kMostFree + 1);
  scene.take<Launch>();
  scene.frees_place(Controller::kMostFree);
  CHECK(scene.take<Launch>().empty());
  scene.end(0, Outcome::kCompleted);  // and the one above keeps its place to its end
  CHECK(scene.take<Launch>().empty());
  scene.end(Controller::kMostFree, Outcome::kCompleted);
  CHECK(scene.take<Launch>().size() == 1);
  CHECK(scene.places_used() == 1);
}

}  // namespace
}  // namespace tune
