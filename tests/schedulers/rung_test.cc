#include "schedulers/rung.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "core/random.h"
#include "numbers.h"

using namespace tune;

namespace {

using tune::testing::kInfinity;
using tune::testing::kNan;

Rung filled(CutOffPosition position, const std::vector<double>& values) {
  Rung rung(1, position);
  for (double value : values) rung.add(value);
  return rung;
}

// A factor as the exact fraction of whole numbers that its double is.
struct RungFactor {
  double value;
  std::uint64_t numerator;
  std::uint64_t denominator;
};

const RungFactor kRungFactors[] = {
    {2, 2, 1},     {3, 3, 1},       {4, 4, 1},        {6, 6, 1},
    {7, 7, 1},     {1.5, 3, 2},     {2.25, 9, 4},     {1.0009765625, 1025, 1024},
    {100, 100, 1}, {1000, 1000, 1}, {4.0625, 65, 16}, {1e9, 1000000000, 1},
};

}  // namespace

TEST_CASE("positions of both rules are exact for every size up to 2000") {
  for (const auto& [value, numerator, denominator] : kRungFactors) {
    CAPTURE(value);
    const CutOffPosition ray(AshaRule::kRay, value);
    const CutOffPosition top(AshaRule::kTop, value);
    for (std::uint64_t n = 1; n <= 2000; ++n) {
      // p = (n - 1)(1 - 1/factor) = (n - 1)(numerator - denominator) / numerator.
      const std::uint64_t p = (n - 1) * (numerator - denominator);
      REQUIRE(ray.below(n) == p / numerator);
      REQUIRE(ray.at(n).fraction ==
              static_cast<double>(p % numerator) / static_cast<double>(numerator));
      // floor(n / factor) = floor(n denominator / numerator), at least 1, go on.
      const std::uint64_t best = std::max<std::uint64_t>(n * denominator / numerator, 1);
      REQUIRE(top.below(n) == n - best);
      REQUIRE(top.at(n).fraction == 0);
    }
  }
}

TEST_CASE("positions stay exact where doubles would round") {
  // 1.1 is a little more than eleven tenths as a double: with 12 values p = 11 (1 - 1/1.1) lies
  // 8.07e-16 above 1, where doubles cannot say so (1.0000000000000004).
  const CutOffPosition tenth(AshaRule::kRay, 1.1);
  CHECK(tenth.below(12) == 1);
  CHECK(tenth.at(12).fraction / 8.074349270001138e-16 == doctest::Approx(1));
  CHECK(tenth.below(11) == 0);  // p = 10/11
  // (n - 1) = 3 * 2^40 + 1, factor 3: p = 2^41 + 2/3.
  const CutOffPosition third(AshaRule::kRay, 3);
  CHECK(third.below((3ULL << 40) + 2) == 1ULL << 41);
  CHECK(third.at((3ULL << 40) + 2).fraction == doctest::Approx(2.0 / 3));
  // Factors beyond every rung's size keep the best value alone.
  for (double factor : {1e15, 1e18, 1e30, 1e300}) {
    CHECK(CutOffPosition(AshaRule::kTop, factor).below(1'000'000) == 999'999);
    CHECK(CutOffPosition(AshaRule::kRay, factor).below(1'000'000) == 999'998);
  }
}

TEST_CASE("an empty rung has no cut-off") {
  CHECK_FALSE(Rung(1, {AshaRule::kRay, 3}).cut_off().has_value());
  CHECK_FALSE(Rung(1, {AshaRule::kTop, 3}).cut_off().has_value());
}

TEST_CASE("the cut-off is interpolated between the neighbours of the position") {
  struct Row {
    double factor;
    std::vector<double> values;
    double cut_off;
  };
  const Row table[] = {
      {4, {0.5}, 0.5},
      {4, {0.4, 0.5}, 0.475},              // p = 0.75: 0.4 + 0.1 * 0.75
      {4, {0.6, 0.4, 0.5}, 0.55},          // p = 1.5: 0.5 + 0.1 * 0.5
      {4, {1, 2, 3, 4, 5}, 4},             // p = 3 exactly
      {2, {4, 1, 3, 2}, 2.5},              // p = 1.5
      {2, {-1e308, 1e308}, 0},             // p = 0.5; the difference is beyond a double
      {2, {1, kInfinity}, kInfinity},      // p = 0.5
      {2, {-kInfinity, 1}, 1},             // a is infinite, f = 0.5: b
      {1.5, {-kInfinity, 1}, -kInfinity},  // f = 1/3: a
      {2, {kNan, 1}, 1},                   // NaN is the worst: as -inf
      {4, {kInfinity, kInfinity}, kInfinity},
      {4, {-kInfinity, -kInfinity}, -kInfinity},
  };
  for (const Row& row : table) {
    CAPTURE(row.factor);
    const auto cut_off = filled({AshaRule::kRay, row.factor}, row.values).cut_off();
    REQUIRE(cut_off.has_value());
    if (std::isinf(row.cut_off)) CHECK(*cut_off == row.cut_off);
    if (!std::isinf(row.cut_off)) CHECK(*cut_off == doctest::Approx(row.cut_off));
  }
  CHECK(std::isnan(*filled({AshaRule::kRay, 1.5}, {kNan, 1}).cut_off()));  // f = 1/3: a
  CHECK(std::isnan(*filled({AshaRule::kRay, 4}, {kNan, kNan, kNan}).cut_off()));
}

TEST_CASE("a cut-off never lies above the better neighbour, so that a tie with it goes on") {
  RandomStream random(3, "rung_test", 0);
  for (int i = 0; i < 20'000; ++i) {
    const double one = random.normal();
    const double other = random.normal();
    // The fraction 1 - 1/factor rounds to 1, and a + (b - a) may be above b.
    const auto cut_off = filled({AshaRule::kRay, 1e18}, {one, other}).cut_off();
    REQUIRE(*cut_off <= std::max(one, other));
    REQUIRE(*cut_off >= std::min(one, other));
  }
}

TEST_CASE("equal values have themselves as the cut-off, whatever the factor and size") {
  for (const RungFactor& factor : kRungFactors) {
    Rung rung(1, {AshaRule::kRay, factor.value});
    for (int n = 1; n <= 400; ++n) {
      rung.add(0.1);  // rounding of the position would give 0.1 * f + 0.1 * (1 - f)
      REQUIRE(*rung.cut_off() == 0.1);
    }
  }
}

TEST_CASE("positions agree with sorting, for random values with ties, infinities and NaN") {
  for (const auto& [factor, numerator, denominator] : kRungFactors) {
    for (AshaRule rule : {AshaRule::kRay, AshaRule::kTop}) {
      CAPTURE(factor);
      RandomStream random(9, "rung_test", numerator);
      const CutOffPosition position(rule, factor);
      Rung rung(1, position);
      std::vector<double> sorted;
      for (int i = 0; i < 500; ++i) {
        const double luck = random.uniform();
        double value = static_cast<double>(random.integer(-20, 20));
        if (luck < 0.05) value = kNan;
        if (luck > 0.95) value = random.uniform() < 0.5 ? kInfinity : -kInfinity;
        const bool is_top = rule == AshaRule::kTop;
        const double with = is_top ? rung.cut_off_with(value) : 0;
        const std::size_t rank = rung.add(value);
        const double then = is_top ? *rung.cut_off() : 0;
        REQUIRE((with == then || (std::isnan(with) && std::isnan(then))));
        sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), value, is_worse), value);
        const double a = sorted[position.below(sorted.size())];
        const Rung::Parts parts = rung.parts();
        const double got = parts.high.front();
        REQUIRE((got == a || (std::isnan(got) && std::isnan(a))));
        REQUIRE(parts.low.size() == position.below(sorted.size()));
        REQUIRE(rung.size() == sorted.size());
        const auto better = std::upper_bound(sorted.begin(), sorted.end(), value, is_worse);
        REQUIRE(rank == static_cast<std::size_t>(sorted.end() - better) + 1);
      }
    }
  }
}

TEST_CASE("a rung is restored as it was, and anything else is refused") {
  const CutOffPosition position(AshaRule::kRay, 2);  // 5 values: 2 below
  const Rung rung = filled(position, {5, 1, 4, 2, 3});
  Rung copy(1, position);
  REQUIRE(copy.restore(rung.parts()));
  CHECK(copy.cut_off() == rung.cut_off());
  CHECK(copy.restore({{2, 1}, {3, 5, 4}}));  // heaps that are not sorted, as older versions saved
  CHECK(copy.cut_off() == rung.cut_off());
  CHECK(copy.restore({}));
  CHECK(copy.size() == 0);

  REQUIRE(copy.restore(rung.parts()));
  CHECK_FALSE(copy.restore({{1}, {2, 3, 4, 5}}));  // the position is elsewhere
  CHECK_FALSE(copy.restore({{1, 2}, {3, 4, 5}}));  // low is not a max-heap
  CHECK_FALSE(copy.restore({{2, 1}, {5, 4, 3}}));  // high is not a min-heap
  CHECK_FALSE(copy.restore({{4, 1}, {3, 3, 5}}));  // low holds a better value than high
  CHECK_FALSE(copy.restore({{1}, {}}));
  CHECK(copy.size() == 5);  // untouched by refusals
  CHECK(copy.cut_off() == 3);
}
