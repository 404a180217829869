// The posterior of a Gaussian process: what it predicts at points, given observations and points
// whose results are pending. Pure.
//
// A pending point is a Kriging believer (Ginsbourger, Le Riche and Carraro, "Kriging is well-suited
// to parallelize optimization", 2010): it counts as if the process's own mean had been observed
// there. That changes no mean, anywhere; it only takes the uncertainty away. So one is added by one
// row of the Cholesky factor, whose entry in `whitened_` is 0.
#pragma once

#include <Eigen/Core>

#include <cstddef>
#include <optional>
#include <vector>

#include "tune/search/gp/fit.h"

namespace tune::search::gp {

struct Prediction {
  Eigen::VectorXd mean;
  Eigen::VectorXd standard_deviation;
};

class Posterior {
 public:
  // One column of `points` for each of `targets`, then those that are pending. Nothing when the
  // covariance is not positive definite. There is room for `more` believers.
  static std::optional<Posterior> make(const Eigen::MatrixXd& points,
                                       const Eigen::VectorXd& targets, const Scales& scales,
                                       int more);

  Prediction predict(const Eigen::MatrixXd& points) const;
  // False, and nothing is changed, when it would no longer be positive definite.
  bool believe(const Eigen::VectorXd& point);
  // The best that was observed, or is believed.
  double best() const { return best_; }
  // Which observations are most correlated with a point, the most correlated first.
  std::vector<std::size_t> nearest(const Eigen::VectorXd& point, std::size_t count) const;

  // Of what it is made, with room for more believers (rough_posterior.h).
  const Eigen::VectorXd& log_length_scales() const { return log_length_scales_; }
  Eigen::Index size() const { return size_; }
  const Eigen::MatrixXd& points() const { return points_; }
  const Eigen::MatrixXd& factor() const { return factor_; }
  const Eigen::VectorXd& whitened_targets() const { return whitened_; }

 private:
  Posterior() = default;
  // Covariances with all points, by the inverse of the factor.
  Eigen::MatrixXd whitened(const Eigen::MatrixXd& scaled_points) const;

  Eigen::VectorXd log_length_scales_;
  double noise_ = 0;
  Eigen::Index observed_ = 0;
  Eigen::Index size_ = 0;     // observed and believed; the matrices have room for more
  Eigen::MatrixXd points_;    // scaled, columns
  Eigen::MatrixXd factor_;    // lower triangle
  Eigen::VectorXd whitened_;  // targets, by the inverse of the factor
  double best_ = 0;
};

}  // namespace tune::search::gp
