// A posterior (posterior.h) in single precision: nearly twice as fast, and right to about four
// digits, which is enough to tell the better of candidates. Pure.
//
// A prediction of a point takes n^2 steps of arithmetic with n observations and believers. Points
// that are followed keep their column of covariances by the inverse of the factor, to which one
// more believer adds one entry: n steps for each of them.
#pragma once

#include <Eigen/Core>

#include <cstddef>

#include "tune/search/gp/posterior.h"

namespace tune::search::gp {

class RoughPosterior {
 public:
  // Of what is observed and believed now; there is room for as many believers.
  explicit RoughPosterior(const Posterior& exact);

  Prediction predict(const Eigen::MatrixXd& points) const;
  // The newest believer of the same posterior.
  void take_newest(const Posterior& exact);
  // Follows more points, after those that are followed.
  void follow(const Eigen::MatrixXd& points);
  // The last of the points that are followed takes the place of this one.
  void unfollow(std::size_t place);
  // Of the points that are followed, from a place on: as predict() but for rounding.
  Prediction predict_followed(std::size_t first) const;

 private:
  Eigen::MatrixXf scaled_points(const Eigen::MatrixXd& points) const;
  // Covariances with all points, by the inverse of the factor.
  Eigen::MatrixXf whitened(const Eigen::MatrixXf& scaled_points) const;
  void make_room(Eigen::Index more);

  Eigen::VectorXd log_length_scales_;
  Eigen::Index size_ = 0;     // as the exact one's, and the next three
  Eigen::MatrixXf points_;    // scaled, columns
  Eigen::MatrixXf factor_;    // lower triangle
  Eigen::VectorXf whitened_;  // targets, by the inverse of the factor

  struct Followed {
    Eigen::Index count = 0;  // the matrices have room for more
    Eigen::MatrixXf points;  // scaled, columns
    Eigen::MatrixXf rows;    // whitened, a column for each point
    Eigen::VectorXf mean;
    Eigen::VectorXf squares;  // norms of the columns of `rows`
  };
  Followed followed_;
};

}  // namespace tune::search::gp
