#include "tune/search/gp/kernel.h"

namespace tune::search::gp {

namespace {

template <class Number>
using Matrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic>;
template <class Number>
using Array = Eigen::Array<Number, Eigen::Dynamic, Eigen::Dynamic>;

// sqrt(5) times the distances of all pairs.
template <class Number>
Array<Number> radii(const Matrix<Number>& a, const Matrix<Number>& b) {
  const Eigen::VectorX<Number> squares_a = a.colwise().squaredNorm();
  const Eigen::VectorX<Number> squares_b = b.colwise().squaredNorm();
  Matrix<Number> squares = -2 * a.transpose() * b;
  squares.colwise() += squares_a;
  squares.rowwise() += squares_b.transpose();
  // Rounding may leave the square of no distance below 0.
  return (5 * squares.array().max(Number(0))).sqrt();
}

template <class Number>
Matrix<Number> covariance_of(const Matrix<Number>& a, const Matrix<Number>& b) {
  const Array<Number> r = radii(a, b);
  return (1 + r + r.square() / 3) * (-r).exp();
}

}  // namespace

Eigen::MatrixXd scaled(const Eigen::MatrixXd& points, const Eigen::VectorXd& log_length_scales) {
  return (-log_length_scales).array().exp().matrix().asDiagonal() * points;
}

Eigen::MatrixXd covariance(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return covariance_of(a, b);
}
Eigen::MatrixXf rough_covariance(const Eigen::MatrixXf& a, const Eigen::MatrixXf& b) {
  return covariance_of(a, b);
}

CovarianceAndSlope covariance_and_slope(const Eigen::MatrixXd& points) {
  const Eigen::ArrayXXd r = radii(points, points);
  const Eigen::ArrayXXd decay = (-r).exp();
  return {(1 + r + r.square() / 3) * decay, 5.0 / 3.0 * (1 + r) * decay};
}

}  // namespace tune::search::gp
