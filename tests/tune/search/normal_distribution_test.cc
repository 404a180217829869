#include "tune/search/normal_distribution.h"

#include <doctest/doctest.h>

#include <cmath>

namespace tune {
namespace {

// By mpmath 1.3 with 60 digits.
TEST_CASE("quantiles of the normal distribution are exact in middle and tails") {
  CHECK(normal_quantile(0.5) == 0);
  CHECK(normal_quantile(0.6) == doctest::Approx(0.2533471031357998).epsilon(1e-15));
  CHECK(normal_quantile(0.975) == doctest::Approx(1.9599639845400542).epsilon(1e-15));
  CHECK(normal_quantile(1e-10) == doctest::Approx(-6.3613409024040562).epsilon(1e-15));
  CHECK(normal_quantile(1e-100) == doctest::Approx(-21.273453560965324).epsilon(1e-15));
  CHECK(normal_quantile(0) == -INFINITY);
  CHECK(normal_quantile(1) == INFINITY);
}

TEST_CASE("the share below a quantile is the one asked for") {
  for (double p = 0.001; p < 1; p += 0.001) {
    CHECK(normal_cdf(normal_quantile(p)) == doctest::Approx(p).epsilon(1e-13));
    CHECK(normal_quantile(p) == doctest::Approx(-normal_quantile(1 - p)).epsilon(1e-11));
  }
}

TEST_CASE("the density is the slope of the share") {
  for (double z = -4; z <= 4; z += 0.37) {
    const double slope = (normal_cdf(z + 1e-5) - normal_cdf(z - 1e-5)) / 2e-5;
    CHECK(normal_density(z) == doctest::Approx(slope).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace tune
