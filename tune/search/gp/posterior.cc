#include "tune/search/gp/posterior.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tune/search/gp/kernel.h"

namespace tune::search::gp {

namespace {

constexpr double kLowestVariance = 1e-10;

// Of points whose whitened covariances have these squares.
Eigen::VectorXd deviations(const Eigen::VectorXd& squares) {
  return (1 - squares.array()).max(kLowestVariance).sqrt();
}

}  // namespace

std::optional<Posterior> Posterior::make(const Eigen::MatrixXd& points,
                                         const Eigen::VectorXd& targets, const Scales& scales,
                                         int more) {
  Posterior made;
  made.log_length_scales_ = Eigen::Map<const Eigen::VectorXd>(
      scales.log_lengths.data(), static_cast<Eigen::Index>(scales.log_lengths.size()));
  made.noise_ = noise_variance(scales.log_noise);
  made.observed_ = targets.size();
  made.size_ = points.cols();
  const Eigen::Index room = made.size_ + more;
  made.points_.resize(points.rows(), room);
  made.points_.leftCols(made.size_) = scaled(points, made.log_length_scales_);
  Eigen::MatrixXd all =
      covariance(made.points_.leftCols(made.size_), made.points_.leftCols(made.size_));
  all.diagonal().setConstant(1 + made.noise_);
  const Eigen::LLT<Eigen::MatrixXd> factor(all);
  if (factor.info() != Eigen::Success) return std::nullopt;
  made.factor_.setZero(room, room);
  made.factor_.topLeftCorner(made.size_, made.size_) = factor.matrixL();
  made.whitened_.setZero(room);
  made.whitened_.head(made.observed_) = targets;
  made.factor_.topLeftCorner(made.observed_, made.observed_)
      .triangularView<Eigen::Lower>()
      .solveInPlace(made.whitened_.head(made.observed_));
  if (!made.whitened_.allFinite()) return std::nullopt;
  made.best_ = targets.maxCoeff();
  if (made.size_ > made.observed_) {
    const Prediction pending = made.predict(points.rightCols(made.size_ - made.observed_));
    made.best_ = std::max(made.best_, pending.mean.maxCoeff());
  }
  return made;
}

Eigen::MatrixXd Posterior::whitened(const Eigen::MatrixXd& scaled_points) const {
  Eigen::MatrixXd rows = covariance(points_.leftCols(size_), scaled_points);
  factor_.topLeftCorner(size_, size_).triangularView<Eigen::Lower>().solveInPlace(rows);
  return rows;
}

Prediction Posterior::predict(const Eigen::MatrixXd& points) const {
  const Eigen::MatrixXd rows = whitened(scaled(points, log_length_scales_));
  return {rows.transpose() * whitened_.head(size_), deviations(rows.colwise().squaredNorm())};
}

bool Posterior::believe(const Eigen::VectorXd& point) {
  const Eigen::MatrixXd place = scaled(point, log_length_scales_);
  const Eigen::VectorXd row = whitened(place);
  const double rest = 1 + noise_ - row.squaredNorm();
  if (!(rest > 0) || size_ == factor_.rows()) return false;
  best_ = std::max(best_, row.dot(whitened_.head(size_)));
  points_.col(size_) = place;
  factor_.row(size_).head(size_) = row.transpose();
  factor_(size_, size_) = std::sqrt(rest);
  ++size_;
  return true;
}

std::vector<std::size_t> Posterior::nearest(const Eigen::VectorXd& point, std::size_t count) const {
  const Eigen::VectorXd near =
      covariance(points_.leftCols(observed_), scaled(point, log_length_scales_));
  std::vector<std::size_t> order(static_cast<std::size_t>(observed_));
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const double of_a = near[static_cast<Eigen::Index>(a)];
                      const double of_b = near[static_cast<Eigen::Index>(b)];
                      return of_a != of_b ? of_a > of_b : a < b;
                    });
  order.resize(count);
  return order;
}

}  // namespace tune::search::gp
