// The time that running trials have to save when all ends early.
#include <doctest/doctest.h>

#include <chrono>

#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::Scene;

TEST_CASE("whatever ends all early, running trials have the time to save that the user set") {
  enum class Way { kInterrupt, kBudget, kFailFast };
  for (const Way way : {Way::kInterrupt, Way::kBudget, Way::kFailFast}) {
    CAPTURE(static_cast<int>(way));
    Scene scene({.num_samples = 5,
                 .cpus = 2,
                 .fail_fast = true,
                 .save_grace = std::chrono::minutes(7),
                 .budget = std::chrono::seconds(10)});
    scene.join();
    if (way == Way::kInterrupt) scene.give(InterruptRequested{2});
    if (way == Way::kBudget) scene.wait(std::chrono::seconds(10));
    if (way == Way::kBudget) scene.give(DeadlineReached{});
    if (way == Way::kFailFast) scene.end(1, Outcome::kException, "step: no");
    const auto stops = scene.take<StopAttempt>();
    REQUIRE(stops.size() == (way == Way::kFailFast ? 1 : 2));
    CHECK(stops[0].kind == (way == Way::kInterrupt ? StopKind::kPause : StopKind::kStop));
    for (const StopAttempt& stop : stops) CHECK(stop.grace == std::chrono::minutes(7));
  }
}

}  // namespace
}  // namespace tune
