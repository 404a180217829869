#include "tune/simulate/dominated_share.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"

namespace tune {
namespace {

using Points = std::vector<std::vector<double>>;

TEST_CASE("the share of a few points is that of their boxes together") {
  CHECK(dominated_share({}) == 0);
  CHECK(dominated_share({{0.25}}) == 0.75);
  CHECK(dominated_share({{0.25}, {0.5}, {0.125}}) == 0.875);
  CHECK(dominated_share({{0, 0}}) == 1);
  CHECK(dominated_share({{0.5, 0.5}}) == 0.25);
  CHECK(dominated_share({{0.5, 0.5}, {0.75, 0.75}}) == 0.25);      // the second is within the first
  CHECK(dominated_share({{0.25, 0.75}, {0.75, 0.25}}) == 0.3125);  // they share a 16th
  CHECK(dominated_share({{0.5, 0.5, 0.5}, {0, 0.5, 0.75}}) == 0.1875);
}

TEST_CASE("what is outside of the cube dominates nothing, or what lies in it") {
  CHECK(dominated_share({{-3, 0.5}}) == 0.5);
  CHECK(dominated_share({{1, 0}, {0.5, 2}}) == 0);
  CHECK(dominated_share({{std::nan(""), 0.5}}) == 0);
  CHECK(dominated_share({{0.5, std::numeric_limits<double>::infinity()}, {0.5, 0.5}}) == 0.25);
}

// The share of a grid's cells whose middle some point dominates, where points lie on its lines.
double counted(const Points& points, std::size_t dimensions, int cells) {
  int all = 1;
  for (std::size_t i = 0; i < dimensions; ++i) all *= cells;
  int dominated = 0;
  for (int cell = 0; cell < all; ++cell) {
    dominated += std::ranges::any_of(points, [&](const std::vector<double>& point) {
      int rest = cell;
      for (const double one : point) {
        if (one > (rest % cells + 0.5) / cells) return false;
        rest /= cells;
      }
      return true;
    });
  }
  return static_cast<double>(dominated) / all;
}

TEST_CASE("the share is that of the cells of a grid") {
  RandomStream random(1, "dominated_share", 0);
  for (const std::size_t dimensions : {1, 2, 3, 4}) {
    for (int round = 0; round < 20; ++round) {
      Points points(static_cast<std::size_t>(random.integer(1, 9)));
      for (auto& point : points) {
        for (std::size_t i = 0; i < dimensions; ++i) {
          point.push_back(static_cast<double>(random.integer(0, 8)) / 8);
        }
      }
      CHECK(dominated_share(points) == doctest::Approx(counted(points, dimensions, 8)));
    }
  }
}

}  // namespace
}  // namespace tune
