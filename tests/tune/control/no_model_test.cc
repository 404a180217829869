// Sweeps whose searcher cannot make a model: they go on by chance, and the user is told why, once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "core/refusal.h"
#include "tune/control/scene.h"
#include "tune/search/model_searcher.h"

namespace tune {
namespace {

using testing::Scene;

struct Throwing : Proposer {
  ProposerAnswer propose(const ProposerQuestion&, const Encoding&, RandomStream&) const override {
    throw std::runtime_error("the line search failed");
  }
};

SearcherSpec throwing() {
  return SearcherSpec("throwing", {}, [] {
    return std::make_unique<ModelSearcher>("throwing", std::make_shared<const Throwing>());
  });
}

// Answers as a driver does.
void answer_all(Scene& scene) {
  while (const auto open = scene.controller_.question()) {
    Proposed proposed{open->number, Duration{}, {}, {}};
    proposed.answer.bytes = scene.controller_.searcher().question(open->count)();
    scene.give(proposed);
  }
}

// A sweep of 16 trials, one after the other, that all report the same value.
Scene live(const SearcherSpec& searcher, double value) {
  Scene scene({.num_samples = 16, .cpus = 1, .searcher = searcher});
  scene.join();
  for (std::uint32_t trial = 0; trial < 16; ++trial) {
    answer_all(scene);
    REQUIRE(scene.controller_.trials().size() == trial + 1);
    scene.give_report(trial, 1, value);
    scene.end(trial, Outcome::kCompleted);
  }
  return scene;
}

std::size_t times_told(const Scene& scene, const std::string& why) {
  return static_cast<std::size_t>(std::ranges::count(
      scene.notices_, "configurations are drawn at random for now, as there is no model: " + why));
}

TEST_CASE("constant and NaN metrics stop no sweep under gp, tpe and auto, and are told once") {
  for (const SearcherSpec& searcher : {gp({.random_share = 0}), tpe(), automatic()}) {
    for (const double value : {0.5, std::nan(""), -std::numeric_limits<double>::infinity()}) {
      CAPTURE(searcher.name());
      CAPTURE(value);
      const Scene scene = live(searcher, value);
      CHECK(scene.controller_.phase() == Phase::kFinished);
      for (std::uint32_t i = 0; i < 16; ++i) CHECK(scene.status(i) == TrialStatus::kTerminated);
      CHECK(times_told(scene, "all results are alike") == 1);
    }
  }
}

// cma_es draws from its distribution as it was, nsga2 crosses parents that are alike: neither is
// drawn at random.
TEST_CASE("nor under cma_es, which says that it learns nothing, and nsga2, which needs no model") {
  for (const double value : {0.5, std::nan(""), -std::numeric_limits<double>::infinity()}) {
    CAPTURE(value);
    const Scene by_cma_es = live(cma_es({.population = 4}), value);
    CHECK(by_cma_es.controller_.phase() == Phase::kFinished);
    CHECK(std::ranges::count(by_cma_es.notices_, "all results of the last generation are alike") ==
          1);
    CHECK(times_told(by_cma_es, "all results of the last generation are alike") == 0);
    const Scene by_nsga2 = live(nsga2({.population = 4}), value);
    CHECK(by_nsga2.controller_.phase() == Phase::kFinished);
    CHECK(std::ranges::none_of(by_nsga2.notices_, [](const std::string& notice) {
      return notice.find("no model") != std::string::npos;
    }));
  }
}

TEST_CASE("a searcher that throws stops no sweep, and is told once") {
  const Scene scene = live(throwing(), 0.5);
  CHECK(scene.controller_.phase() == Phase::kFinished);
  CHECK(times_told(scene, "the line search failed") == 1);
}

}  // namespace
}  // namespace tune
