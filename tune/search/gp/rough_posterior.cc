#include "tune/search/gp/rough_posterior.h"

#include "tune/search/gp/kernel.h"

namespace tune::search::gp {

namespace {

constexpr double kLowestRoughVariance = 1e-6;

// Of points whose whitened targets and covariances have these means and squares.
Prediction prediction(const Eigen::VectorXf& mean, const Eigen::VectorXf& squares) {
  return {mean.cast<double>(),
          (1 - squares.cast<double>().array()).max(kLowestRoughVariance).sqrt().matrix()};
}

}  // namespace

RoughPosterior::RoughPosterior(const Posterior& exact)
    : log_length_scales_(exact.log_length_scales()),
      size_(exact.size()),
      points_(exact.points().cast<float>()),
      factor_(exact.factor().cast<float>()),
      whitened_(exact.whitened_targets().cast<float>()) {}

Eigen::MatrixXf RoughPosterior::scaled_points(const Eigen::MatrixXd& points) const {
  return scaled(points, log_length_scales_).cast<float>();
}

Eigen::MatrixXf RoughPosterior::whitened(const Eigen::MatrixXf& scaled_points) const {
  Eigen::MatrixXf rows = rough_covariance(points_.leftCols(size_), scaled_points);
  factor_.topLeftCorner(size_, size_).triangularView<Eigen::Lower>().solveInPlace(rows);
  return rows;
}

Prediction RoughPosterior::predict(const Eigen::MatrixXd& points) const {
  const Eigen::MatrixXf rows = whitened(scaled_points(points));
  return prediction(rows.transpose() * whitened_.head(size_), rows.colwise().squaredNorm());
}

void RoughPosterior::take_newest(const Posterior& exact) {
  const Eigen::Index newest = size_++;
  points_.col(newest) = exact.points().col(newest).cast<float>();
  factor_.row(newest) = exact.factor().row(newest).cast<float>();
  if (followed_.count == 0) return;
  const auto rows = followed_.rows.leftCols(followed_.count);
  Eigen::VectorXf entries =
      rough_covariance(followed_.points.leftCols(followed_.count), points_.col(newest));
  entries -= rows.topRows(newest).transpose() * factor_.row(newest).head(newest).transpose();
  entries /= factor_(newest, newest);
  followed_.rows.row(newest).head(followed_.count) = entries.transpose();
  followed_.squares.head(followed_.count) += entries.cwiseAbs2();
}

void RoughPosterior::make_room(Eigen::Index more) {
  const Eigen::Index needed = followed_.count + more;
  if (needed <= followed_.squares.size()) return;
  followed_.points.conservativeResize(points_.rows(), needed);
  followed_.rows.conservativeResize(factor_.rows(), needed);
  followed_.mean.conservativeResize(needed);
  followed_.squares.conservativeResize(needed);
}

void RoughPosterior::follow(const Eigen::MatrixXd& points) {
  const Eigen::Index more = points.cols();
  make_room(more);
  const Eigen::MatrixXf places = scaled_points(points);
  const Eigen::MatrixXf rows = whitened(places);
  followed_.points.middleCols(followed_.count, more) = places;
  followed_.rows.block(0, followed_.count, size_, more) = rows;
  followed_.mean.segment(followed_.count, more) = rows.transpose() * whitened_.head(size_);
  followed_.squares.segment(followed_.count, more) = rows.colwise().squaredNorm();
  followed_.count += more;
}

void RoughPosterior::unfollow(std::size_t place) {
  const auto at = static_cast<Eigen::Index>(place);
  const Eigen::Index last = --followed_.count;
  if (at == last) return;
  followed_.points.col(at) = followed_.points.col(last);
  followed_.rows.col(at).head(size_) = followed_.rows.col(last).head(size_);
  followed_.mean[at] = followed_.mean[last];
  followed_.squares[at] = followed_.squares[last];
}

Prediction RoughPosterior::predict_followed(std::size_t first) const {
  const auto from = static_cast<Eigen::Index>(first);
  const Eigen::Index count = followed_.count - from;
  return prediction(followed_.mean.segment(from, count), followed_.squares.segment(from, count));
}

}  // namespace tune::search::gp
