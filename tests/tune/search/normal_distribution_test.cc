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

// By mpmath 1.3 with 60 digits.
TEST_CASE("the logarithm of a share goes on where the share itself is 0") {
  CHECK(log_normal_cdf(2) == doctest::Approx(-0.023012909328963488).epsilon(1e-14));
  CHECK(log_normal_cdf(-1) == doctest::Approx(-1.8410216450092635).epsilon(1e-14));
  CHECK(log_normal_cdf(-20) == doctest::Approx(-203.91715537109726).epsilon(1e-14));
  CHECK(log_normal_cdf(-30) == doctest::Approx(-454.3212439563432).epsilon(1e-11));
  CHECK(log_normal_cdf(-40) == doctest::Approx(-804.60844201375379).epsilon(1e-11));
  CHECK(log_normal_cdf(-1000) == doctest::Approx(-500007.82669481218).epsilon(1e-11));
  const double before = log_normal_cdf(std::nextafter(-30, 0));
  CHECK(before == doctest::Approx(log_normal_cdf(-30)).epsilon(1e-11));
}

TEST_CASE("the density is the slope of the share") {
  for (double z = -4; z <= 4; z += 0.37) {
    const double slope = (normal_cdf(z + 1e-5) - normal_cdf(z - 1e-5)) / 2e-5;
    CHECK(normal_density(z) == doctest::Approx(slope).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace tune
