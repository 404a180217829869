#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "core/refusal.h"
#include "examples/hill_climbing.h"
#include "examples/median_stopping.h"
#include "process/sandbox.h"
#include "tune/testing/scheduler_conformance.h"
#include "tune/testing/searcher_conformance.h"

namespace tune {
namespace {

TEST_CASE("the README's scheduler keeps the contract") {
  testing::check_scheduler(scheduler<MedianStopping>(3));
}

TEST_CASE("the README's searcher keeps the contract") {
  const auto make = [] { return std::make_unique<HillClimbing>(0.0); };
  testing::check_searcher(make,
                          {.space = {}, .num_samples = 6, .objective = {"loss", Mode::kMin, 1}});
}

TEST_CASE("the README's scheduler and searcher find the top of the hill") {
  Sandbox box;
  const Finished run =
      box.run({TUNE_BINARY_DIR "/examples/own_search", "--seed", "6", "--cpus", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_HAS(run.err, "Using median stopping");
  const std::string label = "Best config is: {\"x\":";
  const std::string best = lines_of(run.out).back();
  REQUIRE(best.starts_with(label));
  CHECK(std::abs(std::stod(best.substr(label.size())) - 1) < 0.5);
  const auto analysis = Analysis::load(box.path() / "results/latest");
  REQUIRE(analysis.trials().size() == 20);
  const auto steps = [](const auto& trial) {
    return trial.last_result().template get<int>("training_iteration");
  };
  CHECK(std::ranges::any_of(analysis.trials(), [&](const auto& one) { return steps(one) == 8; }));
  CHECK(std::ranges::any_of(analysis.trials(), [&](const auto& one) { return steps(one) < 8; }));
  CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
