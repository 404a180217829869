#include "tune/search/tpe/normal_mass.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "tune/search/normal_distribution.h"

namespace tune::search::tpe {

namespace {

constexpr double kFarTail = -25;

// The logarithm of normal_cdf, where that may be too small for a double: by the asymptotic series
// of Mills' ratio, of which five terms are right to 1e-11 there.
double log_far_cdf(double z) {
  const double t = 1 / (z * z);
  const double series = 1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t)));
  return -0.5 * z * z - std::log(-z) - 0.5 * std::log(2 * std::numbers::pi) + std::log(series);
}

// For a < b <= 0.
double log_left_mass(double a, double b) {
  if (b > kFarTail) return std::log(normal_cdf(b) - normal_cdf(a));
  const double of_b = log_far_cdf(b);
  return of_b + std::log1p(-std::exp(log_far_cdf(a) - of_b));
}

}  // namespace

double log_mass(double low, double high, double mean, double standard_deviation) {
  const double a = (low - mean) / standard_deviation;
  const double b = (high - mean) / standard_deviation;
  if (!(a < b)) return -std::numeric_limits<double>::infinity();
  if (b <= 0) return log_left_mass(a, b);
  if (a >= 0) return log_left_mass(-b, -a);
  return std::log1p(-normal_cdf(a) - normal_cdf(-b));
}

}  // namespace tune::search::tpe
