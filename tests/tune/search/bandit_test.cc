#include "tune/search/pb2/bandit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

using namespace tune;

TEST_CASE("the model believes what it was shown, and little where it was shown nothing") {
  std::vector<Bandit::Point> points;
  std::vector<double> gains;
  for (int i = 0; i <= 20; ++i) {
    const double x = i / 40.0;  // the left half alone
    points.push_back({i % 2 / 2.0, {x}});
    gains.push_back(-(x - 0.25) * (x - 0.25));
  }
  Bandit bandit(points, gains);
  CHECK(bandit.at({0, {0.25}}).mean > bandit.at({0, {0.0}}).mean + 1);
  CHECK(bandit.at({0, {0.25}}).standard_deviation < 0.5);
  CHECK(bandit.at({0, {1.0}}).standard_deviation > bandit.at({0, {0.25}}).standard_deviation + 0.1);
  const double before = bandit.at({0, {1.0}}).standard_deviation;
  const double mean = bandit.at({0, {1.0}}).mean;
  bandit.expect({0, {1.0}});
  CHECK(bandit.at({0, {1.0}}).standard_deviation < before);
  CHECK(bandit.at({0, {1.0}}).mean == doctest::Approx(mean));  // nothing is known of it
}

TEST_CASE("equal gains, equal points and one point alone are no trouble") {
  for (const std::size_t count : {1u, 2u, 200u}) {
    Bandit bandit(std::vector<Bandit::Point>(count, {0.5, {0.5, 0.5}}),
                  std::vector<double>(count, 3));
    CHECK(std::isfinite(bandit.upper_bound({0.1, {0.2, 0.9}})));
    CHECK(bandit.at({0.5, {0.5, 0.5}}).mean == doctest::Approx(0));
    CHECK(bandit.size() == std::min(count, Bandit::kMaxPoints));
  }
}
