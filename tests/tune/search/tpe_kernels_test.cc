// What makes tpe's densities fast, beside the same written plainly: equal to the last bit where
// nothing is said of precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <set>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tune/search/tpe/cell_kinds.h"
#include "tune/search/tpe/even_masses.h"
#include "tune/search/tpe/evidence.h"
#include "tune/search/tpe/kernel_norms.h"
#include "tune/search/tpe/kernel_sums.h"
#include "tune/search/tpe/normal_mass.h"
#include "tune/search/tpe/widths.h"

namespace tune::search::tpe {
namespace {

// Of so many cells, as many as kernels come to; the first is the prior's.
template <class Real>
std::vector<Real> places_in_cells(std::size_t kernels, int cells, RandomStream& random) {
  std::vector<Real> places = {Real{0.5}};
  while (places.size() <= kernels) {
    const double cell = std::floor(random.uniform() * random.uniform() * cells);
    places.push_back(static_cast<Real>((cell + 0.5) / cells));
  }
  return places;
}

template <class Real>
void check_kinds(std::size_t kernels, int cells, RandomStream& random) {
  CAPTURE(kernels);
  CAPTURE(cells);
  const std::vector<Real> places = places_in_cells<Real>(kernels, cells, random);
  std::vector<std::uint32_t> kinds(places.size());
  const CellKinds<Real> found = cell_kinds(std::span<const Real>(places), std::span(kinds));
  std::vector<Real> widths(kernels);
  write_widths(std::span<const Real>(places).subspan(1), std::span<Real>(widths));
  widths.insert(widths.begin(), Real{1});
  for (std::size_t i = 0; i < places.size(); ++i) {
    REQUIRE(found.places[kinds[i]] == places[i]);
    REQUIRE(found.widths[kinds[i]] == widths[i]);
    REQUIRE(found.log_masses[kinds[i]] == log_mass_within(places[i], widths[i]));
  }
  std::set<std::pair<Real, Real>> different;
  for (std::size_t i = 0; i + 1 < found.places.size(); ++i) {  // the last is the prior's
    different.emplace(found.places[i], found.widths[i]);
  }
  CHECK(different.size() + 1 == found.places.size());
  const std::size_t occupied = std::set<Real>(places.begin() + 1, places.end()).size();
  CHECK(found.places.size() <= 3 * occupied + 1);
}

TEST_CASE("kernels in cells are as wide as by themselves, and of few kinds") {
  RandomStream random(1, "tpe_kernels_test", 0);
  for (const int cells : {1, 2, 7, 32, 200, 1000}) {
    for (const std::size_t kernels : {1u, 2u, 3u, 25u, 97u, 98u, 500u, 3000u}) {
      check_kinds<float>(kernels, cells, random);
      check_kinds<double>(kernels, cells, random);
    }
  }
}

TEST_CASE("kernels that are called dense are all of the narrowest width") {
  RandomStream random(2, "tpe_kernels_test", 0);
  int dense = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const double spread = round % 2 == 0 ? 1 : random.uniform();
    std::vector<float> places(static_cast<std::size_t>(50 + 20 * round));
    for (float& place : places) place = static_cast<float>(spread * random.uniform());
    places.back() = round % 4 == 1 ? 1.0F : places.front();  // a gap after all others, mostly
    if (!are_dense(std::span<const float>(places))) continue;
    ++dense;
    std::vector<float> widths(places.size());
    write_widths(std::span<const float>(places), std::span<float>(widths));
    for (const float width : widths) REQUIRE(width == 0.01F);
  }
  CHECK(dense > 50);
  CHECK(dense < 150);
  const std::vector<float> few(97, 0.5F);  // these may be wider than that
  CHECK(are_dense(std::span<const float>(few)) == false);
}

template <class Real>
void check_even_masses(double precision) {
  EvenMasses<Real> masses;
  for (int round = 0; round < 2; ++round) {  // the second time they are known, or were replaced
    for (const std::uint32_t cells : {1u, 2u, 7u, 32u, 200u}) {
      for (const Real width : {Real{0.01}, Real{0.013}, Real{0.4}, Real{1}}) {
        for (std::uint32_t halves = 0; halves <= 2 * cells; ++halves) {
          const double low = (halves - 1.0) / (2.0 * cells);
          const double high = (halves + 1.0) / (2.0 * cells);
          const Real found = masses.log_mass(cells, halves, width);
          const double expected = log_mass(low, high, 0, static_cast<double>(width));
          const double mirrored = log_mass(-high, -low, 0, static_cast<double>(width));
          REQUIRE(std::abs(static_cast<double>(found) - expected) <=
                  precision * (1 + std::abs(expected)));
          REQUIRE(std::abs(mirrored - expected) <= 1e-9 * (1 + std::abs(expected)));
        }
      }
    }
  }
}

TEST_CASE("masses in even cells are those of any cell, whatever was asked for before") {
  check_even_masses<float>(1e-6);
  check_even_masses<double>(1e-12);
}

template <class Real>
void check_norms(RandomStream& random) {
  std::vector<Real> places = {0, 1, Real{0.5}};
  std::vector<Real> widths = {Real{0.01}, Real{0.01}, 1};
  for (int i = 0; i < 300; ++i) {
    places.push_back(static_cast<Real>(random.uniform()));
    widths.push_back(static_cast<Real>(i % 5 == 0 ? random.uniform() + 0.01 : 0.01));
  }
  std::vector<Real> constants;
  for (std::size_t i = 0; i < places.size(); ++i) {
    constants.push_back(static_cast<Real>(random.normal()));
  }
  std::vector<Real> expected = constants;
  for (std::size_t i = 0; i < places.size(); ++i) {
    expected[i] -= log_mass_within(places[i], widths[i]);
    expected[i] -= std::log(widths[i]) + std::log(2 * std::numbers::pi_v<Real>) / 2;
  }
  subtract_norms(std::span<const Real>(places), std::span<const Real>(widths),
                 std::span<Real>(constants));
  CHECK(constants == expected);
}

TEST_CASE("the norms of many kernels are those of each") {
  RandomStream random(3, "tpe_kernels_test", 0);
  check_norms<float>(random);
  check_norms<double>(random);
  // Half of a kernel at a bound lies inside, and nearly all of one well inside; of the prior the
  // mass within half a standard deviation, .3829249.
  CHECK(log_mass_within(0.0, 0.01) == doctest::Approx(std::log(0.5)));
  CHECK(log_mass_within(0.0F, 0.01F) == doctest::Approx(std::log(0.5)));
  CHECK(log_mass_within(0.3F, 0.01F) == 0);
  CHECK(log_mass_within(0.5, 1.0) == doctest::Approx(std::log(0.3829249225)));
}

// Kernels with one column of numbers and two of kinds, the factors of which fall off fast.
template <class Real>
struct Kernels {
  explicit Kernels(RandomStream& random) {
    columns.kernels = in_blocks(kCount);
    places.resize(columns.kernels);
    scales.resize(columns.kernels);
    kinds[0].resize(columns.kernels);
    kinds[1].resize(columns.kernels);
    columns.constants.assign(columns.kernels, std::numeric_limits<Real>::lowest());
    for (std::size_t i = 0; i < kCount; ++i) {
      columns.constants[i] = static_cast<Real>(random.normal());
      places[i] = static_cast<Real>(random.uniform());
      scales[i] = i == 0 ? Real{1} : Real{30};
      kinds[0][i] = i == 0 ? 0 : static_cast<std::uint32_t>(random.integer(0, kKinds));
      kinds[1][i] = kinds[0][i];
    }
    columns.places = {places.data()};
    columns.scales = {scales.data()};
    columns.kinds = {kinds[0].data(), kinds[1].data()};
  }

  static constexpr std::size_t kCount = 1000;
  static constexpr int kKinds = 60;
  KernelColumns<Real> columns;
  std::vector<Real> places;
  std::vector<Real> scales;
  std::vector<std::uint32_t> kinds[2];
};

template <class Real>
std::vector<Real> factors(double fall) {
  std::vector<Real> logarithms;
  for (int kind = 0; kind < Kernels<Real>::kKinds; ++kind) {
    logarithms.push_back(static_cast<Real>(-1 - fall * kind * kind));
  }
  return logarithms;
}

template <class Real>
void check_sums(double fall, double precision) {
  CAPTURE(fall);
  RandomStream random(4, "tpe_kernels_test", 0);
  const Kernels<Real> kernels(random);
  const std::vector<Real> logarithms = factors<Real>(fall);
  std::size_t asked_for = 0;
  const auto of_kind = [&](std::uint32_t kind) {
    ++asked_for;
    return logarithms[kind];
  };
  const std::vector<Real> nothing(logarithms.size(), kUnknown<Real>);
  FactorTable<Real> known{logarithms};
  FactorTable<Real> first{nothing, of_kind};
  FactorTable<Real> second{nothing, of_kind};
  std::vector<SumPoint<Real>> with_known;
  std::vector<SumPoint<Real>> with_unknown;
  std::vector<double> expected;
  for (const Real at : {Real{0.1}, Real{0.5}, Real{0.9}}) {
    with_known.push_back({{at}, {&known, &known}});
    with_unknown.push_back({{at}, {&first, &second}});
    double sum = 0;
    for (std::size_t i = 0; i < Kernels<Real>::kCount; ++i) {
      const double distance = (kernels.places[i] - at) * kernels.scales[i];
      sum += std::exp(kernels.columns.constants[i] - distance * distance +
                      logarithms[kernels.kinds[0][i]] + logarithms[kernels.kinds[1][i]]);
    }
    expected.push_back(std::log(sum));
  }
  const std::vector<double> sums = log_sums(kernels.columns, with_unknown);
  CHECK(sums == log_sums(kernels.columns, with_known));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    CHECK(sums[i] == doctest::Approx(expected[i]).epsilon(precision));
  }
  // Each is asked for at most once. With 3 k^2, the second of kinds above 15 are not at all: there
  // the first alone is below 750.
  CHECK(asked_for <= 2 * logarithms.size());
  if (fall == 3) CHECK(asked_for <= logarithms.size() + 17);
}

TEST_CASE("sums are the same where factors that do not count are never known") {
  for (const double fall : {0.0, 0.01, 0.3, 3.0}) {
    check_sums<float>(fall, 1e-5);
    check_sums<double>(fall, 1e-12);
  }
}

TEST_CASE("points put into columns together stand there as one by one") {
  RandomStream random(5, "tpe_kernels_test", 0);
  std::vector<UnitPoint> points;
  for (int i = 0; i < 83; ++i) points.push_back({random.uniform(), random.uniform(), kInactive});
  std::vector<const UnitPoint*> some;
  for (const UnitPoint& point : points) some.push_back(&point);
  Columns<float> together(3, 100);
  together.add(std::span(some).first(40));
  together.add(std::span(some).subspan(40));
  Columns<float> singly(3, 100);
  for (const UnitPoint& point : points) singly.add(point);
  CHECK(together.size() == 83);
  for (std::size_t parameter = 0; parameter < 3; ++parameter) {
    const auto column = together.with_middle(parameter);
    CHECK(std::ranges::equal(column, singly.with_middle(parameter)));
    CHECK(column.front() == 0.5F);
    CHECK(column[83] == static_cast<float>(points[82][parameter]));
    // Kernels come in blocks: 84 of them fill up two of 64.
    for (std::size_t i = 84; i < 128; ++i) CHECK(column.data()[i] == 0);
  }
}

}  // namespace
}  // namespace tune::search::tpe
