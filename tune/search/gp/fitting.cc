#include "tune/search/gp/fitting.h"

#include <LBFGSB.h>
#include <Eigen/Cholesky>

#include <cmath>
#include <exception>

#include "tune/search/gp/kernel.h"

namespace tune::search::gp {

namespace {

constexpr double kLengthScaleSd2 = 3;  // of the prior, squared
constexpr double kNoiseSd2 = 4;
constexpr double kNotDefinite = 1e10;
constexpr int kIterations = 15;
constexpr int kFewIterations = 6;

double expected_log_length_scale(Eigen::Index dimensions) {
  return std::sqrt(2.0) + 0.5 * std::log(static_cast<double>(dimensions));
}

// Of the priors: added to value and gradient.
double add_priors(const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) {
  const Eigen::Index d = theta.size() - 1;
  const Eigen::ArrayXd off = theta.head(d).array() - expected_log_length_scale(d);
  const double noise_off = theta[d] - kExpectedLogNoise;
  gradient.head(d).array() += off / kLengthScaleSd2;
  gradient[d] += noise_off / kNoiseSd2;
  return off.square().sum() / (2 * kLengthScaleSd2) + noise_off * noise_off / (2 * kNoiseSd2);
}

// The sums over all pairs of weight times (difference of feature j)^2, for each j.
Eigen::VectorXd weighted_squares(Eigen::MatrixXd points, const Eigen::MatrixXd& weights) {
  // By the binomial formula, which is a product of matrices. The points' middle as origin keeps the
  // terms small that cancel.
  const Eigen::VectorXd middle = points.rowwise().mean();
  points.colwise() -= middle;
  const Eigen::VectorXd row_sums = weights.rowwise().sum();
  const Eigen::VectorXd squares = points.array().square().matrix() * row_sums;
  const Eigen::VectorXd products = (points * weights).cwiseProduct(points).rowwise().sum();
  return 2 * (squares - products);
}

LBFGSpp::LBFGSBParam<double> optimiser_settings(int iterations) {
  LBFGSpp::LBFGSBParam<double> settings;
  settings.epsilon = 1e-3;
  settings.epsilon_rel = 1e-4;
  settings.delta = 1e-6;
  settings.max_iterations = iterations;
  return settings;
}

}  // namespace

double NegativeLogPosterior::operator()(const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) {
  const Eigen::Index d = theta.size() - 1;
  const Eigen::Index n = targets_.size();
  gradient.setZero(theta.size());
  const Eigen::MatrixXd points = scaled(points_, theta.head(d));
  auto [covariance, slope] = covariance_and_slope(points);
  covariance.diagonal().setConstant(1 + noise_variance(theta[d]));
  const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
  if (factor.info() != Eigen::Success || !theta.allFinite()) return kNotDefinite;

  const Eigen::VectorXd alpha = factor.solve(targets_);
  Eigen::MatrixXd weights = -factor.solve(Eigen::MatrixXd::Identity(n, n));
  weights.noalias() += alpha * alpha.transpose();
  gradient[d] = -0.5 * weights.trace() * std::exp(theta[d]);
  weights.array() *= slope.array();
  gradient.head(d) = -0.5 * weighted_squares(points, weights);
  const double half_determinant = factor.matrixLLT().diagonal().array().log().sum();
  const double value = 0.5 * targets_.dot(alpha) + half_determinant + add_priors(theta, gradient);
  if (!std::isfinite(value)) return kNotDefinite;
  if (best_.size() == 0 || value < best_value_) {
    best_ = theta;
    best_value_ = value;
  }
  return value;
}

double NegativeLogPosterior::value(const Eigen::VectorXd& theta) const {
  const Eigen::MatrixXd points = scaled(points_, theta.head(theta.size() - 1));
  Eigen::MatrixXd all = covariance(points, points);
  all.diagonal().setConstant(1 + noise_variance(theta[theta.size() - 1]));
  const Eigen::LLT<Eigen::MatrixXd> factor(all);
  if (factor.info() != Eigen::Success || !theta.allFinite()) return kNotDefinite;
  const double half_determinant = factor.matrixLLT().diagonal().array().log().sum();
  const Eigen::VectorXd whitened = factor.matrixL().solve(targets_);
  Eigen::VectorXd gradient = Eigen::VectorXd::Zero(theta.size());
  const double value =
      0.5 * whitened.squaredNorm() + half_determinant + add_priors(theta, gradient);
  return std::isfinite(value) ? value : kNotDefinite;
}

namespace {

// Begins at `start`; what it finds is posterior.best(). Returns why it gave up, if it did.
std::string optimise(NegativeLogPosterior& posterior, const Scales& start, int iterations) {
  const auto d = static_cast<Eigen::Index>(start.log_lengths.size());
  Eigen::VectorXd theta(d + 1);
  theta.head(d) = Eigen::Map<const Eigen::VectorXd>(start.log_lengths.data(), d);
  theta[d] = start.log_noise;
  Eigen::VectorXd low = Eigen::VectorXd::Constant(d + 1, -4);
  Eigen::VectorXd high = Eigen::VectorXd::Constant(d + 1, 4);
  low[d] = -8;
  high[d] = 1;
  // The solver keeps a reference to them.
  const LBFGSpp::LBFGSBParam<double> settings = optimiser_settings(iterations);
  LBFGSpp::LBFGSBSolver<double> solver(settings);
  try {
    double value = 0;
    solver.minimize(posterior, theta, value, low, high);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

// What was found, or the trouble.
FitOutcome outcome_of(const NegativeLogPosterior& posterior, std::string trouble, const Fit& last) {
  const Eigen::VectorXd& best = posterior.best();
  if (best.size() == 0) {
    return {{}, trouble.empty() ? "the covariance is not positive definite" : trouble};
  }
  const Eigen::Index d = best.size() - 1;
  Fit fit = last;
  fit.scales = {{best.data(), best.data() + d}, best[d]};
  return {std::move(fit), trouble};
}

}  // namespace

FitOutcome fitted(const Eigen::MatrixXd& points, const Eigen::VectorXd& targets, const Fit& last) {
  const Fit first = first_fit(static_cast<std::size_t>(points.rows()));
  NegativeLogPosterior posterior(points, targets);
  std::string trouble = optimise(posterior, last.scales, kIterations);
  if (last.scales.log_lengths != first.scales.log_lengths) {
    optimise(posterior, first.scales, kIterations);
  }
  return outcome_of(posterior, std::move(trouble), last);
}

FitOutcome fitted_in_haste(const Eigen::MatrixXd& points, const Eigen::VectorXd& targets,
                           const Fit& last) {
  NegativeLogPosterior posterior(points, targets);
  std::string trouble = optimise(posterior, last.scales, kFewIterations);
  return outcome_of(posterior, std::move(trouble), last);
}

}  // namespace tune::search::gp
