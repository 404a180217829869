// Where trials fail at once: what the controller makes of it.
#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>

#include "core/refusal.h"
#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::Scene;

// Two nodes of one CPU each, the first of which is bad.
class TwoNodes : public Scene {
 public:
  explicit TwoNodes(Options options) : Scene(std::move(options)) {
    for (const char* name : {"bad", "good"}) {
      AgentHello hello;
      hello.hostname = name;
      hello.cpu_units = kUnit;
      const AgentNumber agent{std::string(name) == "bad" ? 0u : 1u};
      give(FromAgent{agent, hello});
      ZygoteReady ready;
      ready.trainables = {{"T", true, false}};
      give(FromAgent{agent, ready});
    }
  }
  std::optional<std::uint32_t> trial_on(std::uint32_t agent) const {
    for (const Trial& trial : controller_.trials()) {
      if (trial.placement && trial.placement->agent.value == agent) return trial.number.value;
    }
    return std::nullopt;
  }
  void tell(std::uint32_t trial, AgentEvent event) {
    give(FromAgent{controller_.trials()[trial].placement->agent, std::move(event)});
  }
  void report(std::uint32_t trial, std::uint64_t iteration) {
    tell(trial, Scene::report(trial, iteration, 0.5));
  }
  void end(std::uint32_t trial, Outcome outcome) {
    AttemptEnded ended;
    ended.trial = TrialNumber{trial};
    ended.attempt = controller_.trials()[trial].attempt;
    ended.outcome = outcome;
    tell(trial, ended);
  }
  DeviceHealth::Names aside() const { return controller_.device_health().set_aside(); }

  // The trials that the bad node gets fail at once; those on the good one report and end.
  void work_until_set_aside() {
    for (int i = 0; i < 20 && aside().empty(); ++i) {
      if (const auto trial = trial_on(0)) end(*trial, Outcome::kExit);
      const std::uint32_t lucky = trial_on(1).value();
      report(lucky, 1);
      end(lucky, Outcome::kCompleted);
    }
  }
};

TEST_CASE("a node on which trials fail at once is set aside, and costs no trial a failure") {
  TwoNodes scene({.num_samples = 12});
  scene.work_until_set_aside();
  CHECK(scene.aside() == DeviceHealth::Names{"bad"});
  CHECK(testing::has(scene.notices_.back(), "bad is set aside: 3 trials failed there"));
  // One that had begun there meanwhile is tried elsewhere as well.
  if (const auto trial = scene.trial_on(0)) scene.end(*trial, Outcome::kExit);
  CHECK_FALSE(scene.trial_on(0).has_value());
  while (scene.controller_.phase() == Phase::kRunning) {
    const auto trial = scene.trial_on(1);
    REQUIRE(trial.has_value());
    CHECK_FALSE(scene.trial_on(0).has_value());
    scene.end(*trial, Outcome::kCompleted);
  }
  for (const Trial& trial : scene.controller_.trials()) {
    CHECK(trial.status == TrialStatus::kTerminated);
    CHECK(trial.failures == 0);
  }
}

TEST_CASE("a trial that fails at once on two nodes has failed once") {
  TwoNodes scene({.num_samples = 4});
  const std::uint32_t trial = scene.trial_on(0).value();
  scene.end(trial, Outcome::kException);
  CHECK(scene.status(trial) == TrialStatus::kPending);  // the good node is taken
  CHECK(scene.trial_on(0) == 2);                        // another one goes there meanwhile
  CHECK(scene.controller_.trials()[trial].failures == 0);
  scene.report(scene.trial_on(1).value(), 1);
  scene.end(scene.trial_on(1).value(), Outcome::kCompleted);
  REQUIRE(scene.trial_on(1) == trial);
  scene.end(trial, Outcome::kException);
  CHECK(scene.status(trial) == TrialStatus::kError);
  CHECK(scene.controller_.trials()[trial].failures == 1);
  CHECK(scene.aside().empty());
}

TEST_CASE("a failure counts at once where there is no other node, or after a report") {
  Scene alone({.num_samples = 1});
  alone.join();
  alone.end(0, Outcome::kException);
  CHECK(alone.status(0) == TrialStatus::kError);

  TwoNodes scene({.num_samples = 2});
  const std::uint32_t trial = scene.trial_on(0).value();
  scene.report(trial, 1);
  scene.end(trial, Outcome::kException);
  CHECK(scene.status(trial) == TrialStatus::kError);
}

TEST_CASE(
    "a node that was set aside gets one trial after a while, and is taken back by its report") {
  TwoNodes scene({.num_samples = 40});
  scene.work_until_set_aside();
  const auto due = scene.controller_.next_deadline();
  REQUIRE(due.has_value());
  CHECK(*due <= scene.now_ + DeviceHealth::kProbeAfter);
  scene.wait(*due - scene.now_);
  scene.give(DeadlineReached{});
  const auto probe = scene.trial_on(0);
  REQUIRE(probe.has_value());
  CHECK_FALSE(scene.controller_.next_deadline().has_value());
  SUBCASE("it reports") {
    scene.report(*probe, 1);
    CHECK(scene.aside().empty());
    CHECK(testing::has(scene.notices_.back(), "bad works again"));
    scene.end(*probe, Outcome::kCompleted);
    CHECK(scene.trial_on(0).has_value());
  }
  SUBCASE("it fails, is tried elsewhere, and the next probe comes later") {
    scene.end(*probe, Outcome::kExit);
    CHECK(scene.status(*probe) == TrialStatus::kPending);
    CHECK_FALSE(scene.trial_on(0).has_value());
    CHECK(scene.controller_.next_deadline() == scene.now_ + DeviceHealth::kProbeAfter);
  }
}

TEST_CASE("a node is in doubt for no trial that a user keeps back") {
  TwoNodes scene({.num_samples = 12});
  std::set<std::uint32_t> doubtful;
  while (const auto trial = scene.trial_on(0)) {  // the good node is taken: each is to wait for it
    doubtful.insert(*trial);
    scene.end(*trial, Outcome::kExit);
  }
  REQUIRE(doubtful.size() == DeviceHealth::kBlamesToSetAside);
  const std::uint32_t first = *doubtful.begin();
  UserOrdered pause;
  pause.kind = OrderKind::kPause;
  SUBCASE("and that waits") {
    pause.trial = TrialNumber{first};
    scene.give(pause);
  }
  SUBCASE("and that has its second try") {
    const std::uint32_t lucky = scene.trial_on(1).value();
    scene.report(lucky, 1);  // which shows nothing of the bad node
    scene.end(lucky, Outcome::kCompleted);
    REQUIRE(scene.trial_on(1) == first);
    pause.trial = TrialNumber{first};
    scene.give(pause);
    CHECK_FALSE(scene.trial_on(0).has_value());  // it may still report
    scene.end(first, Outcome::kLost);
  }
  CHECK(scene.status(first) == TrialStatus::kPaused);
  CHECK(scene.trial_on(0).has_value());
  CHECK(scene.aside().empty());
}

TEST_CASE("when the good node is lost, trials go to the bad one rather than nowhere") {
  TwoNodes scene({.num_samples = 12});
  scene.work_until_set_aside();
  scene.give(AgentLost{AgentNumber{1}, "gone"});
  CHECK(scene.trial_on(0).has_value());
}

}  // namespace
}  // namespace tune
