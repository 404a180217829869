// Merits, and their order by non-dominated rank.
#include "schedulers/fronts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/random.h"
#include "numbers.h"
#include "schedulers/merit.h"

using namespace tune;

namespace {

using tune::testing::kInfinity;

std::vector<std::uint32_t> all_of(const Fronts& fronts) {
  return fronts.best(fronts.size());
}

// The fronts by their definition: peeled off one by one.
std::vector<Fronts::Members> peeled(const std::vector<Merit>& merits) {
  std::vector<Fronts::Members> fronts;
  std::vector<std::uint32_t> left;
  for (std::uint32_t i = 0; i < merits.size(); ++i) {
    if (merits[i].violation == 0) left.push_back(i);
  }
  while (!left.empty()) {
    Fronts::Members front;
    for (const std::uint32_t i : left) {
      const bool is_dominated = std::ranges::any_of(
          left, [&](std::uint32_t j) { return dominates(merits[j], merits[i]); });
      if (!is_dominated) front.push_back(i);
    }
    std::erase_if(left, [&](std::uint32_t i) { return std::ranges::count(front, i) > 0; });
    fronts.push_back(std::move(front));
  }
  return fronts;
}

std::vector<Merit> random_merits(std::uint64_t seed, std::size_t count, std::size_t goals) {
  RandomStream random(seed, "fronts_test", goals);
  std::vector<Merit> merits;
  for (std::size_t i = 0; i < count; ++i) {
    Merit& merit = merits.emplace_back();
    for (std::size_t goal = 0; goal < goals; ++goal) {
      merit.values.push_back(static_cast<double>(random.integer(0, 12)));  // ties are common
    }
    if (random.uniform() < 0.2) merit.violation = static_cast<double>(random.integer(1, 4));
  }
  return merits;
}

Fronts fronts_of(const std::vector<Merit>& merits) {
  Fronts fronts;
  for (const Merit& merit : merits) fronts.add(merit);
  return fronts;
}

}  // namespace

TEST_CASE("numbers of a result are values of goals, then margins of constraints") {
  const Objective objective = {"",
                               Mode::kMax,
                               0,
                               {{"acc", Mode::kMax}, {"loss", Mode::kMin}},
                               {{.metric = "ms", .max = 20}, {.metric = "acc", .min = 0.5}}};
  std::map<std::string, double> result = {{"acc", 0.4}, {"loss", 2}, {"ms", 25}};
  const NumberAt number = [&](std::string_view path) -> std::optional<double> {
    const auto found = result.find(std::string(path));
    return found == result.end() ? std::nullopt : std::optional(found->second);
  };
  // 25 breaks 20 by a quarter, 0.4 breaks 0.5 by a fifth.
  const MeritNumbers numbers = numbers_of(objective, number).value();
  REQUIRE(numbers.size() == 4);
  CHECK(numbers[0] == 0.4);
  CHECK(numbers[1] == -2);
  CHECK(numbers[2] == doctest::Approx(-0.25));
  CHECK(numbers[3] == doctest::Approx(-0.2));
  CHECK(merit_of(numbers, 2).values == std::vector<double>{0.4, -2});
  CHECK(merit_of(numbers, 2).violation == doctest::Approx(0.45));
  CHECK(metrics_of(objective) == std::vector<std::string>{"acc", "loss", "ms"});
  CHECK(describe(objective) == "acc (max), loss (min); ms <= 20, acc >= 0.5");

  result["loss"] = std::nan("");
  CHECK(merit_of(*numbers_of(objective, number), 2).violation == kInfinity);
  result.erase("loss");
  CHECK_FALSE(numbers_of(objective, number).has_value());
}

TEST_CASE("a bound of zero, and a range, are constraints too") {
  Objective objective = {"m", Mode::kMax, 0, {}, {{.metric = "m", .max = 0}}};
  const auto violation = [&](double value) {
    return merit_of(*numbers_of(objective, [&](std::string_view) { return value; }), 1).violation;
  };
  CHECK(violation(0) == 0);
  CHECK(violation(0.3) == doctest::Approx(0.3));
  objective.constraints = {{.metric = "m", .min = 1, .max = 2}};
  CHECK(violation(1.5) == 0);
  CHECK(violation(0.5) == doctest::Approx(0.5));
  CHECK(violation(3) == doctest::Approx(0.5));
}

TEST_CASE(
    "what keeps the constraints dominates what does not, and that by how much it breaks them") {
  CHECK(dominates({{1, 1}}, {{1, 0}}));
  CHECK_FALSE(dominates({{1, 1}}, {{1, 1}}));
  CHECK_FALSE(dominates({{1, 0}}, {{0, 1}}));
  CHECK(dominates({{0, 0}}, {{9, 9}, 0.1}));
  CHECK(dominates({{0, 0}, 0.1}, {{9, 9}, 0.2}));
  CHECK_FALSE(dominates({{9, 9}, 0.1}, {{0, 0}, 0.1}));
}

TEST_CASE("fronts kept up to date are those by definition, whatever comes in which order") {
  for (std::size_t goals = 1; goals <= 4; ++goals) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      CAPTURE(goals);
      CAPTURE(seed);
      const std::vector<Merit> merits = random_merits(seed, 150, goals);
      Fronts fronts;
      for (std::size_t i = 0; i < merits.size(); ++i) {
        fronts.add(merits[i]);
        if (i % 10 == 9)
          CHECK(fronts.fronts() ==
                peeled({merits.begin(), merits.begin() + static_cast<std::ptrdiff_t>(i) + 1}));
      }
    }
  }
}

TEST_CASE("a place is how many come before, and equal merits share it") {
  for (std::size_t goals = 1; goals <= 3; ++goals) {
    const std::vector<Merit> merits = random_merits(9, 120, goals);
    const Fronts fronts = fronts_of(merits);
    const std::vector<std::uint32_t> order = all_of(fronts);
    REQUIRE(order.size() == merits.size());
    for (std::size_t at = 0; at < order.size(); ++at) {
      const auto alike = std::ranges::find_if(order, [&](std::uint32_t other) {
        const Merit& merit = merits[order[at]];
        const bool both_break = merits[other].violation == merit.violation && merit.violation > 0;
        return both_break || merits[other] == merit;
      });
      CHECK(fronts.place(order[at]) == static_cast<std::size_t>(alike - order.begin()));
    }
    const std::vector<std::uint32_t> some = fronts.best(17);
    CHECK(std::ranges::equal(some, std::span(order).first(17)));
  }
}

TEST_CASE("within a front the best by the first objective comes first, then the farthest ones") {
  // (first, second): a line from (0, 40) to (4, 0), with another member right beside its middle.
  const Fronts fronts =
      fronts_of({{{2, 20}}, {{0, 40}}, {{4, 0}}, {{2.1, 19}}, {{1, 30}}, {{1, 29}}});
  // 2 has the best first value; 1 is at the other end; then the middle, 0 before 3 as it came
  // before and lies nearer to the middle; then 4; 3 is left. 5 is dominated by 4.
  CHECK(all_of(fronts) == std::vector<std::uint32_t>{2, 1, 0, 4, 3, 5});
  CHECK(fronts.best(0).empty());
}

TEST_CASE("those that break constraints stand behind all fronts, the least first") {
  const Fronts fronts = fronts_of({{{9}, 2}, {{1}}, {{8}, kInfinity}, {{7}, 0.5}, {{2}}, {{3}, 2}});
  CHECK(all_of(fronts) == std::vector<std::uint32_t>{4, 1, 3, 0, 5, 2});
  CHECK(fronts.place(5) == fronts.place(0));
  CHECK(fronts.fronts().size() == 2);
}

TEST_CASE("the order of many at once is that of fronts, but for ties") {
  const std::vector<Merit> merits = random_merits(4, 100, 2);
  const Fronts fronts = fronts_of(merits);
  const std::vector<std::size_t> order = best_first(merits);
  REQUIRE(order.size() == merits.size());
  std::size_t at = 0;
  for (const Fronts::Members& front : fronts.fronts()) {
    Fronts::Members found;
    for (std::size_t i = 0; i < front.size(); ++i) {
      found.push_back(static_cast<std::uint32_t>(order[at++]));
    }
    CHECK(std::ranges::is_permutation(found, front));
  }
}

TEST_CASE("the Pareto front is what none dominates, or what breaks the constraints least") {
  CHECK(pareto_front({}).empty());
  CHECK(pareto_front({{{1, 0}}, {{0, 0}}, {{0, 1}}, {{5, 5}, 1}}) ==
        std::vector<std::size_t>{0, 2});
  CHECK(pareto_front({{{1, 0}, 2}, {{0, 0}, 1}, {{0, 1}, 1}}) == std::vector<std::size_t>{1, 2});
}
