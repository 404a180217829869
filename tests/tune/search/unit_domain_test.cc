#include "tune/search/unit_domain.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/json.h"
#include "core/random.h"

namespace tune {
namespace {

constexpr std::uint64_t kDomainSeed = 5;  // of every random test here
constexpr int kDomainDraws = 20000;

const std::vector<Domain>& all_domains() {
  static const std::vector<Domain> domains = {
      uniform(-2, 6),         quniform(-1, 2, 0.1),        loguniform(1e-4, 1e-1),
      qloguniform(1, 64, 1),  qloguniform(0.5, 80, 0.5),   randint(-3, 9),
      randint(0, 1'000'000),  qrandint(16, 256, 16),       qrandint(-7, 7, 3),
      lograndint(1, 1024),    lograndint(16, 513),         randn(3, 2),
      qrandn(0, 10, 0.5),     choice({"a", "b", "c"}),     choice({1, 2.5, true, nullptr, "x"}),
      choice({64, 128, 256}), quniform(0, 1, 0.3333333333)};
  return domains;
}

TEST_CASE("what a coordinate means is in the domain, and has a coordinate that means the same") {
  RandomStream random(kDomainSeed, "unit_domain_test", 0);
  for (const Domain& domain : all_domains()) {
    CAPTURE(to_json(domain.describe()));
    const UnitDomain unit(domain);
    for (int i = 0; i < 2000; ++i) {
      double u = i == 0 ? 0 : i == 1 ? 1 : random.uniform();
      if (std::holds_alternative<Domain::Normal>(domain.kind())) u = 0.001 + 0.998 * u;
      CAPTURE(u);
      const Value value = unit.value(u);
      const std::optional<double> at = unit.unit(value);
      REQUIRE(at.has_value());
      const UnitCell cell = unit.cell(u);
      CHECK(cell.low <= cell.at);
      CHECK(cell.at <= cell.high);
      CHECK(cell.low <= u + 1e-12);
      CHECK(u <= cell.high + 1e-12);
      if (cell.width() == 0) {
        CHECK(*at == doctest::Approx(u).epsilon(1e-9));
      } else {
        CHECK(*at == cell.at);
        CHECK(unit.value(cell.at) == value);
      }
    }
  }
}

TEST_CASE("what stands for coordinates of a normal domain lies within 3.5 standard deviations") {
  for (const double u : {0.0, 1e-12, 1e-5, 1 - 1e-5, 1.0}) {
    const double side = u < 0.5 ? -1 : 1;
    const UnitDomain normal(randn(3, 2));
    CHECK(normal.value(normal.cell(u).at).number() == doctest::Approx(3 + side * 7).epsilon(1e-3));
    const UnitDomain multiples(qrandn(0, 1, 0.5));
    CHECK(multiples.value(multiples.cell(u).at).number() == side * 3.5);
  }
  // A value that was drawn farther out has its own coordinate.
  const UnitDomain normal(randn(0, 1));
  CHECK(normal.value(*normal.unit(Value(5.0))).number() == doctest::Approx(5));
}

// The share of draws below each value is the coordinate: what the domain draws has even
// coordinates.
TEST_CASE("values that a domain draws have cells as likely as they are wide") {
  RandomStream random(kDomainSeed, "unit_domain_test", 1);
  for (const Domain& domain : all_domains()) {
    CAPTURE(to_json(domain.describe()));
    const UnitDomain unit(domain);
    std::vector<int> below(9, 0);
    for (int i = 0; i < kDomainDraws; ++i) {
      const UnitCell cell = unit.cell(*unit.unit(domain.draw(random)));
      const double within = cell.low + random.uniform() * cell.width();
      for (std::size_t decile = 0; decile < below.size(); ++decile) {
        below[decile] += within < 0.1 * static_cast<double>(decile + 1);
      }
    }
    for (std::size_t decile = 0; decile < below.size(); ++decile) {
      const double share = 0.1 * static_cast<double>(decile + 1);
      const double sd = std::sqrt(kDomainDraws * share * (1 - share));
      CHECK(std::abs(below[decile] - kDomainDraws * share) < 5 * sd);
    }
  }
}

TEST_CASE("a coordinate gives the very value that the same random number draws") {
  for (const Domain& domain : {uniform(-2, 6), quniform(-1, 2, 0.1), loguniform(1e-4, 1e-1),
                               qloguniform(1, 64, 1), lograndint(1, 1024)}) {
    CAPTURE(to_json(domain.describe()));
    RandomStream drawn(kDomainSeed, "unit_domain_test", 2);
    RandomStream same(kDomainSeed, "unit_domain_test", 2);
    const UnitDomain unit(domain);
    for (int i = 0; i < 1000; ++i) CHECK(unit.value(same.uniform()) == domain.draw(drawn));
  }
}

TEST_CASE("coordinates stand where the values do") {
  CHECK(UnitDomain(uniform(0, 4)).unit(1) == 0.25);
  CHECK(UnitDomain(loguniform(1e-4, 1)).unit(1e-2) == doctest::Approx(0.5));
  CHECK(UnitDomain(randint(0, 4)).unit(1) == 0.375);  // the middle of [0.25, 0.5)
  CHECK(UnitDomain(qrandint(16, 64, 16)).unit(32) == 0.375);
  CHECK(UnitDomain(quniform(0, 4, 1)).unit(1) == 0.25);  // of [0.125, 0.375)
  CHECK(UnitDomain(quniform(0, 4, 1)).cell(0).high == 0.125);
  CHECK(UnitDomain(choice({"a", "b"})).unit("b") == 0.75);
  CHECK(UnitDomain(randn(3, 2)).unit(3.0) == 0.5);
  CHECK(UnitDomain(randn(3, 2)).unit(5.0) == doctest::Approx(0.8413447460685429));
  // [1, 2), [2, 4): half of log 4 each.
  CHECK(UnitDomain(lograndint(1, 4)).cell(0.4).high == doctest::Approx(0.5));
  CHECK(UnitDomain(lograndint(1, 4)).unit(1) == doctest::Approx(0.25));
}

TEST_CASE("a number is the same number however it is written") {
  CHECK(UnitDomain(randint(0, 4)).unit(1.0) == UnitDomain(randint(0, 4)).unit(1));
  CHECK(UnitDomain(choice({1, 2})).unit(2.0) == 0.75);
  CHECK(UnitDomain(uniform(0, 4)).unit(4) == 1);  // never drawn, but at the end of what is
}

TEST_CASE("what a domain never draws has no coordinate") {
  CHECK_FALSE(UnitDomain(uniform(0, 4)).unit(4.5).has_value());
  CHECK_FALSE(UnitDomain(uniform(0, 4)).unit("1").has_value());
  CHECK_FALSE(UnitDomain(uniform(0, 4)).unit(std::nan("")).has_value());
  CHECK_FALSE(UnitDomain(randint(0, 4)).unit(4).has_value());
  CHECK_FALSE(UnitDomain(randint(0, 4)).unit(1.5).has_value());
  CHECK_FALSE(UnitDomain(randint(0, 4)).unit(1e300).has_value());
  CHECK_FALSE(UnitDomain(qrandint(16, 64, 16)).unit(17).has_value());
  CHECK_FALSE(UnitDomain(quniform(0, 4, 0.5)).unit(0.7).has_value());
  CHECK_FALSE(UnitDomain(choice({"a", "b"})).unit("c").has_value());
  CHECK_FALSE(UnitDomain(randn(0, 1)).unit(INFINITY).has_value());
}

TEST_CASE("values are counted where they can be") {
  CHECK(UnitDomain(randint(-3, 9)).count() == 12);
  CHECK(UnitDomain(qrandint(16, 64, 16)).count() == 4);
  CHECK(UnitDomain(quniform(-1, 2, 0.1)).count() == 31);
  CHECK(UnitDomain(lograndint(7, 8)).count() == 1);
  CHECK(UnitDomain(choice({"a", "b", "c"})).count() == 3);
  CHECK(UnitDomain(randint(-3, 9)).is_even());
  CHECK(UnitDomain(qrandint(16, 64, 16)).is_even());
  CHECK_FALSE(UnitDomain(quniform(-1, 2, 0.1)).is_even());  // half a cell at the bounds
  CHECK_FALSE(UnitDomain(lograndint(1, 64)).is_even());
  CHECK_FALSE(UnitDomain(uniform(0, 1)).is_even());
  CHECK_FALSE(UnitDomain(uniform(0, 1)).count().has_value());
  CHECK_FALSE(UnitDomain(qrandn(0, 1, 1)).count().has_value());
  CHECK_FALSE(UnitDomain(randint(0, std::numeric_limits<std::int64_t>::max())).count().has_value());
}

TEST_CASE("the widest integers keep within their bounds") {
  const auto lowest = std::numeric_limits<std::int64_t>::min();
  const auto highest = std::numeric_limits<std::int64_t>::max();
  const UnitDomain unit(randint(lowest, highest));
  CHECK(unit.value(0) == Value(lowest));
  CHECK(unit.value(1) == Value(highest - 1));
  for (double u = 0; u <= 1; u += 1.0 / 64) {
    CHECK(unit.unit(unit.value(u)).value() == doctest::Approx(u));
  }
}

TEST_CASE("a value that a choice names twice has one coordinate that stands for it") {
  const UnitDomain unit(choice({"a", "b", "a"}));
  CHECK(unit.cell(0.1).at == unit.cell(0.9).at);
  CHECK(unit.unit("a") == unit.cell(0.9).at);
  CHECK(unit.value(0.9) == Value("a"));
}

}  // namespace
}  // namespace tune
