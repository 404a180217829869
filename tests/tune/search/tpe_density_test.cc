// The densities of tpe against Optuna's (tests/data/search/make_traces.py writes them down).
#include "tune/search/tpe/density.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "tune/search/recorded.h"
#include "tune/search/tpe/normal_mass.h"
#include "tune/search/tpe/widths.h"

namespace tune::search::tpe {
namespace {

const std::string kDensities = TUNE_SOURCE_DIR "/tests/data/search/optuna_densities.txt";

Encoding recorded_space() {
  SearchSpace space;
  space.set("x", uniform(-3, 5));
  space.set("lr", loguniform(1e-5, 1));
  space.set("n", randint(2, 12));
  space.set("width", lograndint(1, 64));
  space.set("kind", choice({"a", "b", "c", "d"}));
  return Encoding(space);
}

UnitPoint recorded_point(const std::vector<double>& values, const Encoding& encoding) {
  const std::vector<Value> kinds = {"a", "b", "c", "d"};
  Config config(Value::make_map());
  config.set("x", values[0]);
  config.set("lr", values[1]);
  config.set("n", static_cast<std::int64_t>(values[2]));
  config.set("width", static_cast<std::int64_t>(values[3]));
  config.set("kind", kinds[static_cast<std::size_t>(values[4])]);
  const Encoded encoded = encoding.encode(config);
  REQUIRE_MESSAGE(encoded.complaint.empty(), encoded.complaint);
  return encoded.point;
}

// One estimator of the file: its trials, kernels, and densities at points.
struct Recorded {
  std::vector<UnitPoint> trials;
  std::vector<double> weights;
  std::map<std::string, std::vector<double>> places;
  std::map<std::string, std::vector<double>> widths;
  std::vector<UnitPoint> points;
  std::vector<double> log_densities;
};

std::vector<Recorded> recorded_estimators(const Encoding& encoding) {
  std::vector<Recorded> found;
  for (const Line& line : recorded_lines(kDensities)) {
    if (line.kind() == "estimator") {
      found.emplace_back();
    } else if (line.kind() == "trial") {
      found.back().trials.push_back(recorded_point(line.numbers(), encoding));
    } else if (line.kind() == "weights") {
      found.back().weights = line.numbers();
    } else if (line.kind() == "at") {
      found.back().points.push_back(recorded_point(line.numbers(), encoding));
      found.back().log_densities.push_back(line.numbers().back());
    } else {
      auto& columns = line.kind() == "places" ? found.back().places : found.back().widths;
      columns[line.words[1]] = line.numbers(2);
    }
  }
  REQUIRE(found.size() == 7);
  return found;
}

template <class Real>
Columns<Real> columns_of(const std::vector<UnitPoint>& points, const Encoding& encoding) {
  Columns<Real> columns(encoding.size(), points.size());
  for (const UnitPoint& point : points) columns.add(point);
  return columns;
}

template <class Real>
std::vector<double> widths_of(const std::vector<Real>& places) {
  std::vector<Real> widths(places.size());
  write_widths(std::span<const Real>(places), std::span<Real>(widths));
  return {widths.begin(), widths.end()};
}

TEST_CASE("kernels lie, and are as wide and heavy, as Optuna's") {
  const Encoding encoding = recorded_space();
  for (const Recorded& each : recorded_estimators(encoding)) {
    check_near(kernel_weights(each.trials.size()), each.weights, 1e-12, "weights");
    const Columns<double> columns = columns_of<double>(each.trials, encoding);
    for (std::size_t i = 0; i < encoding.size(); ++i) {
      const std::string& path = encoding.parameters()[i].path;
      if (path == "kind") continue;
      // Optuna's prior stands at the end, in the middle of the space and as wide as it.
      std::vector<double> places(columns.column(i).begin(), columns.column(i).end());
      std::vector<double> widths = widths_of(places);
      places.push_back(0.5);
      widths.push_back(1);
      check_near(places, each.places.at(path), 1e-9, "places of " + path);
      check_near(widths, each.widths.at(path), 1e-9, "widths of " + path);
    }
  }
}

TEST_CASE("densities of numbers, logarithms, whole numbers and choices are Optuna's") {
  const Encoding encoding = recorded_space();
  const SubSpace all = sub_spaces_of(encoding).front();
  for (const Recorded& each : recorded_estimators(encoding)) {
    CAPTURE(each.trials.size());
    const Columns<double> columns = columns_of<double>(each.trials, encoding);
    const Density<double> density(encoding, all, columns);
    check_near(density.log_densities(each.points), each.log_densities, 1e-9, "log density");
    const Columns<float> narrow = columns_of<float>(each.trials, encoding);
    const Density<float> fast(encoding, all, narrow);
    check_near(fast.log_densities(each.points), each.log_densities, 1e-4, "with float");
  }
}

TEST_CASE("many kernels are as wide as sorting says") {
  RandomStream random(5, "tpe_density_test", 0);
  for (const double spread : {1.0, 0.3, 0.02, 0.0}) {
    for (const std::size_t count : {98u, 200u, 5000u}) {
      CAPTURE(spread);
      CAPTURE(count);
      std::vector<double> places;
      for (std::size_t i = 0; i < count; ++i) {
        // Some stand alone, some at one place, some on the bounds.
        double place = i % 40 == 0 ? random.uniform() : 0.4 + spread * (random.uniform() - 0.4);
        if (i % 7 == 0) place = std::round(place * 37) / 37;
        places.push_back(place);
      }
      std::vector<std::size_t> order(count);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
      std::vector<double> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        const double below = i == 0 ? 0 : places[order[i]] - places[order[i - 1]];
        const double above = i + 1 == count ? 0 : places[order[i + 1]] - places[order[i]];
        expected[order[i]] = std::max({below, above, 0.01});
      }
      check_near(widths_of(places), expected, 1e-12, "width");
    }
  }
}

TEST_CASE("with float, densities of thousands of kernels are right to 1e-4") {
  SearchSpace space;
  for (int i = 0; i < 12; ++i) space.set("x" + std::to_string(i), uniform(0, 1));
  space.set("n", randint(1, 30));
  space.set("kind", choice({"a", "b", "c"}));
  const Encoding encoding(space);
  const SubSpace all = sub_spaces_of(encoding).front();
  RandomStream random(6, "tpe_density_test", 0);
  for (const double spread : {1.0, 0.1}) {
    std::vector<UnitPoint> trials;
    std::vector<UnitPoint> points;
    for (int i = 0; i < 3000; ++i) {
      UnitPoint point = encoding.draw(random);
      for (double& unit : point) unit *= spread;
      point = encoding.settled(std::move(point), random);
      trials.push_back(point);
      if (i % 100 == 0) points.push_back(point);
      if (i % 100 == 1) points.push_back(encoding.draw(random));
    }
    const Columns<float> narrow = columns_of<float>(trials, encoding);
    const Columns<double> wide = columns_of<double>(trials, encoding);
    check_near(Density<float>(encoding, all, narrow).log_densities(points),
               Density<double>(encoding, all, wide).log_densities(points), 1e-4, "log density");
  }
}

TEST_CASE("the mass of an interval is known however far away it is") {
  // scipy.stats.norm, logcdf and logsf of which are exact in the tails.
  CHECK(log_mass(0, 1, 0.5, 1) == doctest::Approx(-0.9599163336956221).epsilon(1e-12));
  CHECK(log_mass(0.8, 0.9, 0.5, 0.01) == doctest::Approx(-454.3212439563434).epsilon(1e-12));
  CHECK(log_mass(0, 0.1, 0.5, 0.01) == doctest::Approx(-804.6084420137538).epsilon(1e-12));
  CHECK(log_mass(0.5, 0.5, 0.5, 0.01) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("the masses of all cells, and of all options, sum up to 1") {
  SearchSpace space;
  space.set("n", randint(0, 7));
  space.set("kind", choice({"a", "b", "c"}));
  const Encoding encoding(space);
  const SubSpace all = sub_spaces_of(encoding).front();
  RandomStream random(7, "tpe_density_test", 0);
  Columns<double> columns(2, 9);
  for (int i = 0; i < 9; ++i) columns.add(encoding.draw(random));
  std::vector<UnitPoint> points;
  for (int n = 0; n < 7; ++n) {
    for (int kind = 0; kind < 3; ++kind) {
      points.push_back(encoding.settled({(n + 0.5) / 7, (kind + 0.5) / 3}, random));
    }
  }
  double sum = 0;
  for (const double each : Density<double>(encoding, all, columns).log_densities(points)) {
    sum += std::exp(each);
  }
  CHECK(sum == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("points are drawn as the density has them") {
  SearchSpace space;
  space.set("x", uniform(0, 1));
  space.set("n", randint(0, 4));
  space.set("kind", choice({"a", "b", "c"}));
  const Encoding encoding(space);
  const SubSpace all = sub_spaces_of(encoding).front();
  RandomStream random(8, "tpe_density_test", 0);
  Columns<double> columns(3, 4);
  for (const double x : {0.1, 0.15, 0.6, 0.62}) {
    columns.add(encoding.settled({x, x, x < 0.5 ? 0.1 : 0.9}, random));
  }
  const Density<double> density(encoding, all, columns);
  constexpr int kDraws = 20000;
  std::map<std::pair<std::size_t, double>, double> seen;
  double low = 0;
  for (int i = 0; i < kDraws; ++i) {
    UnitPoint point(3, kInactive);
    density.draw(point, random);
    low += point[0] < 0.3 ? 1.0 / kDraws : 0;
    seen[{1, point[1]}] += 1.0 / kDraws;
    seen[{2, point[2]}] += 1.0 / kDraws;
  }
  // The marginals, summed up over everything else on a fine grid.
  std::map<std::pair<std::size_t, double>, double> expected;
  double expected_low = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<UnitPoint> points;
    for (const double n : {0.125, 0.375, 0.625, 0.875}) {
      for (const double kind : {1 / 6.0, 0.5, 5 / 6.0}) {
        points.push_back(encoding.settled({(i + 0.5) / 200, n, kind}, random));
      }
    }
    const std::vector<double> logs = density.log_densities(points);
    for (std::size_t j = 0; j < points.size(); ++j) {
      const double mass = std::exp(logs[j]) / 200;
      expected_low += points[j][0] < 0.3 ? mass : 0;
      expected[{1, points[j][1]}] += mass;
      expected[{2, points[j][2]}] += mass;
    }
  }
  CHECK(low == doctest::Approx(expected_low).epsilon(0.02));
  REQUIRE(seen.size() == 7);
  for (const auto& [key, share] : expected) CHECK(std::abs(seen[key] - share) < 0.015);
}

}  // namespace
}  // namespace tune::search::tpe
