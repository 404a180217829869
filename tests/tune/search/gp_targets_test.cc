#include "tune/search/gp/targets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tune/search/gp/training_set.h"

namespace tune::search::gp {
namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

std::vector<Observation> observations(const std::vector<ValueAt>& results) {
  std::vector<Observation> all;
  for (const ValueAt& result : results) all.push_back({{}, {0.5}, result, false});
  return all;
}

std::vector<std::size_t> order_of(const std::vector<double>& targets) {
  std::vector<std::size_t> order(targets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return targets[a] < targets[b]; });
  return order;
}

TEST_CASE("normal scores have mean 0, variance 1, and know ranks alone") {
  const auto targets = targets_of(observations({{1, 3}, {1, -1e9}, {1, 4}, {1, kWorst}}));
  REQUIRE(targets.size() == 4);
  CHECK(order_of(targets) == std::vector<std::size_t>{3, 1, 0, 2});
  // Ranks (i + 1/2) / 4: quantiles -1.1503, -0.3186, 0.3186, 1.1503, of variance 0.7125.
  CHECK(targets[2] == doctest::Approx(1.15035 / std::sqrt(0.71241)).epsilon(1e-4));
  CHECK(targets[0] == doctest::Approx(-targets[1]));
  CHECK(targets == targets_of(observations({{1, 30}, {1, 5}, {1, 31}, {1, 4}})));
}

TEST_CASE("equal values have equal targets") {
  const auto targets = targets_of(observations({{1, 2}, {1, 1}, {1, 2}, {1, 2}, {1, 7}}));
  CHECK(targets[0] == targets[2]);
  CHECK(targets[0] == targets[3]);
  CHECK(targets[1] < targets[0]);
  CHECK(targets[0] < targets[4]);
}

TEST_CASE("results that are all alike teach nothing") {
  CHECK(targets_of({}).empty());
  CHECK(targets_of(observations({{1, 2}})).empty());
  CHECK(targets_of(observations({{1, 2}, {9, 2}, {3, 2}})).empty());
  CHECK(targets_of(observations({{1, kWorst}, {1, kWorst}})).empty());
}

TEST_CASE("ranked within rungs a value compares with those of as many steps") {
  // Ranks within rungs 0 (3 values: 1/6, 1/2, 5/6), 1 (1/4, 3/4) and 2 (1/2), plus the rung.
  const auto targets =
      targets_of(observations({{1, 0.5}, {3, 0.1}, {1, 0.1}, {9, 0.2}, {1, 0.9}, {3, 0.3}}));
  CHECK(order_of(targets) == std::vector<std::size_t>{2, 0, 4, 1, 5, 3});
}

TEST_CASE("about as many steps are the same rung") {
  // 5 and 7 steps are less than half a rung apart, 2 and 7 more than one.
  const auto targets = targets_of(observations({{5, 0.9}, {7, 0.1}, {6, 0.5}, {2, 0.99}}));
  CHECK(order_of(targets)[0] == 3);
  CHECK(targets[0] > targets[2]);
}

TEST_CASE("a trial that completed early with the best value counts as one that got furthest") {
  auto all = observations({{81, 0.9}, {2, 0.95}, {81, 0.7}, {9, 0.5}, {2, 0.2}});
  CHECK(order_of(targets_of(all)).back() == 0);
  all[1].completed = true;  // a stop rule of its value ended it
  all[4].completed = true;  // it diverged, and said that it was done
  const auto targets = targets_of(all);
  CHECK(order_of(targets) == std::vector<std::size_t>{4, 3, 2, 0, 1});
}

// ---- What counts --------------------------------------------------------------------------------

History running(std::uint32_t trials) {
  History history;
  for (std::uint32_t i = 0; i < trials; ++i) history.add({i}, {0.1 * i});
  return history;
}

TEST_CASE("without a scheduler that stops only trials that ended count") {
  History history = running(4);
  for (std::uint32_t i = 0; i < 3; ++i) history.result({i}, 9, i);
  history.end({0}, TrialEnd::kCompleted);
  history.end({1}, TrialEnd::kError);  // it said something before: that counts
  const TrainingSet set = training_set(history);
  REQUIRE(set.observations.size() == 2);
  CHECK(set.observations[1].result == ValueAt{9, 1});
  CHECK(set.pending == std::vector<UnitPoint>{{0.1 * 2}, {0.1 * 3}});
  CHECK(set.results_known == 2);
  CHECK(set.pending_known == 2);
  CHECK_FALSE(set.stopped_early);
}

TEST_CASE("a trial that runs on counts at the rung where another was kept back") {
  History history = running(3);
  for (const std::uint64_t step : {1, 2, 3, 4}) history.result({0}, step, 0.1 * step);
  for (const std::uint64_t step : {1, 2, 3}) history.result({1}, step, 0.05 * step);
  history.result({2}, 1, 0.3);
  history.pause({1});  // at step 3
  const TrainingSet set = training_set(history);
  REQUIRE(set.observations.size() == 2);
  CHECK(set.observations[0].result == ValueAt{3, 0.1 * 3});  // not of step 4
  CHECK(set.observations[1].result == ValueAt{3, 0.05 * 3});
  CHECK(set.pending == std::vector<UnitPoint>{{0.1 * 2}});
  CHECK(set.stopped_early);
}

TEST_CASE("a trial that failed without a word is the worst, one that ended so says nothing") {
  History history = running(3);
  history.end({0}, TrialEnd::kError);
  history.end({1}, TrialEnd::kStopped);
  const TrainingSet set = training_set(history);
  REQUIRE(set.observations.size() == 1);
  CHECK(set.observations[0].result == ValueAt{1, kWorst});
  CHECK(set.pending_known == 1);
}

TEST_CASE("of many trials the best and besides the newest are taken, in their order") {
  History history = running(20);
  for (std::uint32_t i = 0; i < 20; ++i) {
    history.result({i}, 1, i == 3 || i == 5 ? 100 : 1.0 / (1 + i));
    if (i < 17) history.end({i}, TrialEnd::kCompleted);
  }
  const TrainingSet set = training_set(history, {.observations = 6, .best = 3, .pending = 2});
  std::vector<std::uint32_t> taken;
  for (const Observation& each : set.observations) taken.push_back(each.trial->value);
  CHECK(taken == std::vector<std::uint32_t>{0, 3, 5, 14, 15, 16});
  CHECK(set.results_known == 17);
  CHECK(set.pending == std::vector<UnitPoint>{{0.1 * 18}, {0.1 * 19}});
  CHECK(set.pending_known == 3);
  CHECK(set.fingerprints.size() == 20);
}

}  // namespace
}  // namespace tune::search::gp
