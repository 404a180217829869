#include "tune/search/gp/kernel.h"

namespace tune::search::gp {

namespace {

// sqrt(5) times the distances of all pairs.
Eigen::ArrayXXd radii(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  const Eigen::VectorXd squares_a = a.colwise().squaredNorm();
  const Eigen::VectorXd squares_b = b.colwise().squaredNorm();
  Eigen::MatrixXd squares = -2 * a.transpose() * b;
  squares.colwise() += squares_a;
  squares.rowwise() += squares_b.transpose();
  // Rounding may leave the square of no distance below 0.
  return (5 * squares.array().max(0.0)).sqrt();
}

}  // namespace

Eigen::MatrixXd scaled(const Eigen::MatrixXd& points, const Eigen::VectorXd& log_length_scales) {
  return (-log_length_scales).array().exp().matrix().asDiagonal() * points;
}

Eigen::MatrixXd covariance(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  const Eigen::ArrayXXd r = radii(a, b);
  return (1 + r + r.square() / 3) * (-r).exp();
}

CovarianceAndSlope covariance_and_slope(const Eigen::MatrixXd& points) {
  const Eigen::ArrayXXd r = radii(points, points);
  const Eigen::ArrayXXd decay = (-r).exp();
  return {(1 + r + r.square() / 3) * decay, 5.0 / 3.0 * (1 + r) * decay};
}

}  // namespace tune::search::gp
