// The covariance of a Gaussian process: Matern of smoothness 5/2, variance 1, a length scale for
// each feature ("automatic relevance determination"; Rasmussen and Williams, "Gaussian Processes
// for Machine Learning", 2006, chapter 4 and 5.1). Points are the columns of a matrix. Pure.
#pragma once

#include <Eigen/Core>

namespace tune::search::gp {

// Each feature divided by its length scale.
Eigen::MatrixXd scaled(const Eigen::MatrixXd& points, const Eigen::VectorXd& log_length_scales);

// Of scaled points: (1 + r + r^2 / 3) exp(-r) with r = sqrt(5) * distance. One row for each point
// of `a`, one column for each of `b`.
Eigen::MatrixXd covariance(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b);
// The same in single precision.
Eigen::MatrixXf rough_covariance(const Eigen::MatrixXf& a, const Eigen::MatrixXf& b);

// Covariances of all pairs, and beside them what derivatives by length scales are made of:
// d covariance / d log length scale j = slope * (difference of the scaled feature j)^2.
struct CovarianceAndSlope {
  Eigen::MatrixXd covariance;
  Eigen::MatrixXd slope;
};
CovarianceAndSlope covariance_and_slope(const Eigen::MatrixXd& points);

}  // namespace tune::search::gp
