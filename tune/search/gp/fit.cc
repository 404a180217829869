#include "tune/search/gp/fit.h"

#include <cmath>

namespace tune::search::gp {

namespace {

constexpr double kLowestNoise = 1e-4;  // keeps the covariance positive definite

}  // namespace

Fit first_fit(std::size_t dimensions) {
  const double length_scale = std::log(0.5 * std::sqrt(static_cast<double>(dimensions)));
  Fit fit;
  fit.scales = {std::vector<double>(dimensions, length_scale), kExpectedLogNoise};
  return fit;
}

bool is_due(const Fit& fit, std::uint64_t results) {
  if (fit.scales.log_lengths.empty() || fit.results == 0) return true;
  return static_cast<double>(results) >= 1.1 * static_cast<double>(fit.results) + 2;
}

double noise_variance(double log_noise) {
  return std::exp(log_noise) + kLowestNoise;
}

}  // namespace tune::search::gp
