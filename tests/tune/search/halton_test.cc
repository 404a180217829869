#include "tune/search/halton.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "tune/search/swept.h"

namespace tune::search {
namespace {

TEST_CASE("each part of an axis gets its share of points") {
  // In base p, p^k points from a multiple of p^k on have one in each of p^k parts.
  const Encoding encoding = cube(3);
  const std::vector<int> parts = {64, 81, 125};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const int count = parts[axis];
    std::set<int> seen;
    for (int i = 0; i < count; ++i) {
      const double unit =
          halton_point(encoding, 7, static_cast<std::uint64_t>(3 * count + i))[axis];
      REQUIRE(unit >= 0);
      REQUIRE(unit < 1);
      seen.insert(static_cast<int>(unit * count));
    }
    CHECK(seen.size() == static_cast<std::size_t>(count));
  }
}

TEST_CASE("pairs of axes are filled, too") {
  // 36 cells of the first two axes, 2^k 3^l of them: 2^2 * 3^2 points have one in each.
  std::set<std::pair<int, int>> seen;
  for (std::uint64_t i = 0; i < 36; ++i) {
    const UnitPoint point = halton_point(cube(2), 8, i);
    seen.insert({static_cast<int>(point[0] * 4), static_cast<int>(point[1] * 9)});
  }
  CHECK(seen.size() == 36);
}

TEST_CASE("a point depends on the seed and its number alone") {
  const Encoding encoding = cube(4);
  const HaltonProposer proposer;
  CHECK_FALSE(proposer.learns());
  Swept swept(encoding, bowl, 9);
  const std::vector<Proposal> batch = swept.ask(proposer, 3);
  swept.tried(batch[1].point);
  CHECK(swept.ask(proposer, 1).front().point == halton_point(encoding, 9, 3));
  CHECK(batch[2].point == halton_point(encoding, 9, 2));
  CHECK(batch[0].point != halton_point(encoding, 10, 0));
  CHECK(batch[0].expected.has_value() == false);
}

TEST_CASE("what depends on a choice has a dimension of its own") {
  const Domain kinds = choice({"one", "two"});
  std::vector<Parameter> parameters = {{"kind", UnitDomain(kinds)},
                                       {"x", UnitDomain(uniform(0, 1)), Condition{0, 0}},
                                       {"y", UnitDomain(uniform(0, 1)), Condition{0, 1}}};
  Config frame(Value::make_map());
  frame.set("kind", Value());
  const Encoding encoding(std::move(parameters), std::move(frame));
  const Encoding free = cube(3);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const UnitPoint point = halton_point(encoding, 11, i);
    const UnitPoint all = halton_point(free, 11, i);
    const bool first = encoding.option(0, point) == 0;
    CHECK(point[1] == (first ? all[1] : kInactive));
    CHECK(point[2] == (first ? kInactive : all[2]));
  }
}

TEST_CASE("points that do not hold are made up for") {
  const SearchSpace space = {{"a", uniform(0, 1)}, {"b", uniform(0, 1)}};
  const Encoding encoding(space, {"a < b"});
  int as_without = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const UnitPoint point = halton_point(encoding, 12, i);
    CHECK(encoding.holds(point));
    as_without += point == halton_point(Encoding(space), 12, i) ? 1 : 0;
  }
  CHECK(as_without > 10);
  CHECK(as_without < 30);
}

TEST_CASE("points are more even than draws") {
  // The mean of a smooth function over 200 points, against the integral.
  const Encoding encoding = cube(5);
  const auto value = [](const UnitPoint& point) {
    double product = 1;
    for (const double unit : point) product *= 1 + (unit - 0.5);
    return product;
  };
  double by_halton = 0;
  double by_draws = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    RandomStream random(seed, "halton_test", 0);
    double halton = 0;
    double draws = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
      halton += value(halton_point(encoding, seed, i)) / 200;
      draws += value(encoding.draw(random)) / 200;
    }
    by_halton += std::abs(halton - 1);
    by_draws += std::abs(draws - 1);
  }
  CHECK(by_halton < 0.3 * by_draws);
}

}  // namespace
}  // namespace tune::search
