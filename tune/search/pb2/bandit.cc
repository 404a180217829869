#include "tune/search/pb2/bandit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tune {

namespace {

// To mean 0 and standard deviation 1, and no more than 2 from there.
Eigen::VectorXd standardised(Eigen::VectorXd values) {
  values.array() -= values.mean();
  const double deviation = std::sqrt(values.squaredNorm() / static_cast<double>(values.size()));
  if (!(deviation > 0)) return Eigen::VectorXd::Zero(values.size());
  return (values / deviation).cwiseMax(-2).cwiseMin(2);
}

}  // namespace

Bandit::Bandit(std::vector<Point> points, const std::vector<double>& values)
    : points_(std::move(points)) {
  const std::size_t surplus = points_.size() > kMaxPoints ? points_.size() - kMaxPoints : 0;
  points_.erase(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(surplus));
  const auto count = static_cast<Eigen::Index>(points_.size());
  values_ = standardised(Eigen::Map<const Eigen::VectorXd>(values.data() + surplus, count));
  double best = -std::numeric_limits<double>::infinity();
  for (const double length : {0.1, 0.3, 1.0, 3.0}) {
    for (const double epsilon : {0.01, 0.1, 0.3}) {
      for (const double noise : {0.01, 0.1, 0.5}) {
        const Shape shape{length, epsilon, noise};
        const double likelihood = log_likelihood(shape);
        if (!(likelihood > best)) continue;
        best = likelihood;
        shape_ = shape;
      }
    }
  }
  factor_ = factor(shape_);
  weights_ = factor_.solve(values_);
}

double Bandit::covariance(const Shape& shape, const Point& a, const Point& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.features.size(); ++i) {
    const double gap = a.features[i] - b.features[i];
    squares += gap * gap;
  }
  return std::exp(-squares / shape.length) *
         std::pow(1 - shape.epsilon, std::abs(a.time - b.time) / 2);
}

Bandit::Factor Bandit::factor(const Shape& shape) const {
  const auto count = static_cast<Eigen::Index>(points_.size());
  Eigen::MatrixXd matrix(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      matrix(i, j) = covariance(shape, points_[static_cast<std::size_t>(i)],
                                points_[static_cast<std::size_t>(j)]);
    }
    matrix(i, i) += shape.noise;
  }
  return Factor(matrix);  // of the lower triangle
}

double Bandit::log_likelihood(const Shape& shape) const {
  const Factor factor = this->factor(shape);
  if (factor.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
  const Eigen::VectorXd half = factor.matrixL().solve(values_);
  return -half.squaredNorm() / 2 - factor.matrixLLT().diagonal().array().log().sum();
}

void Bandit::expect(Point pending) {
  points_.push_back(std::move(pending));
  factor_ = factor(shape_);
}

Bandit::Belief Bandit::at(const Point& point) const {
  Eigen::VectorXd near(static_cast<Eigen::Index>(points_.size()));
  for (Eigen::Index i = 0; i < near.size(); ++i)
    near(i) = covariance(shape_, point, points_[static_cast<std::size_t>(i)]);
  const double mean = near.head(weights_.size()).dot(weights_);
  factor_.matrixL().solveInPlace(near);
  return {mean, std::sqrt(std::max(0.0, 1 - near.squaredNorm()))};
}

double Bandit::upper_bound(const Point& point) const {
  const Belief belief = at(point);
  const double count = static_cast<double>(std::max<Eigen::Index>(values_.size(), 1));
  const double kappa = std::sqrt(0.2 + std::max(0.0, std::log(0.4 * count)));
  return belief.mean + kappa * belief.standard_deviation;
}

}  // namespace tune
