// Fits a Gaussian process: the length scales and the noise that have the largest posterior density
// (MAP) given targets of mean 0 and variance 1. Pure.
//
// Priors: log length scale ~ N(sqrt(2) + log(d) / 2, sqrt(3)) in d dimensions (Hvarfner, Hellsten
// and Nardi, "Vanilla Bayesian Optimization Performs Great in High Dimensions", ICML 2024), log
// noise variance ~ N(log 0.01, 2). Ours differs: the variance of the signal is 1, as the targets'
// is. The optimum is looked for by L-BFGS-B (LBFGS++) in few iterations: the model is fitted again
// soon.
#pragma once

#include <Eigen/Core>

#include <optional>
#include <string>

#include "tune/search/gp/fit.h"

namespace tune::search::gp {

// The negative logarithm of the posterior density, but for a constant, and its gradient, by
// (log length scales, log noise).
class NegativeLogPosterior {
 public:
  // One column of `points` for each of `targets`; both must outlive it.
  NegativeLogPosterior(const Eigen::MatrixXd& points, const Eigen::VectorXd& targets)
      : points_(points), targets_(targets) {}

  // As LBFGS++ calls it. Very large, with gradient 0, where the covariance is not positive
  // definite.
  double operator()(const Eigen::VectorXd& theta, Eigen::VectorXd& gradient);
  // Without the gradient, in a third of the time.
  double value(const Eigen::VectorXd& theta) const;

  // The best of all that were asked for; empty when at none the covariance was positive definite.
  const Eigen::VectorXd& best() const { return best_; }

 private:
  const Eigen::MatrixXd& points_;
  const Eigen::VectorXd& targets_;
  Eigen::VectorXd best_;
  double best_value_ = 0;
};

// The better of two fits, one that begins at `last` and one that begins where the first of all did:
// with few results there are several optima, and a way from one to another there is not. An
// optimiser that gives up leaves the best that it has seen; nothing, with the reason, when that is
// none.
struct FitOutcome {
  std::optional<Fit> fit;
  std::string trouble;
};
FitOutcome fitted(const Eigen::MatrixXd& points, const Eigen::VectorXd& targets, const Fit& last);
// In a small part of the time: begins at `last` alone, and takes fewer steps.
FitOutcome fitted_in_haste(const Eigen::MatrixXd& points, const Eigen::VectorXd& targets,
                           const Fit& last);

}  // namespace tune::search::gp
