#include "tune/search/gp/acquisition.h"

#include <cmath>
#include <numbers>

#include "tune/search/normal_distribution.h"

namespace tune::search::gp {

namespace {

// log(density(z) + z * cdf(z)). Far below, where the two cancel and then vanish, by the first terms
// of the expansion density(z) * (1 / z^2 - 3 / z^4 + 15 / z^6 ...).
double log_improvement(double z) {
  if (z > -25) return std::log(normal_density(z) + z * normal_cdf(z));
  const double log_density = -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi);
  return log_density - 2 * std::log(-z) + std::log1p((15 / (z * z) - 3) / (z * z));
}

}  // namespace

double log_expected_improvement(double mean, double standard_deviation, double best) {
  return std::log(standard_deviation) + log_improvement((mean - best) / standard_deviation);
}

Eigen::VectorXd log_expected_improvement(const Prediction& prediction, double best) {
  Eigen::VectorXd values(prediction.mean.size());
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    values[i] =
        log_expected_improvement(prediction.mean[i], prediction.standard_deviation[i], best);
  }
  return values;
}

}  // namespace tune::search::gp
