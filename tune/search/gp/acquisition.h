// The acquisition function: the logarithm of the expected improvement over the best (Jones,
// Schonlau and Welch, "Efficient Global Optimization of Expensive Black-Box Functions", 1998; of
// its logarithm: Ament et al., "Unexpected Improvements to Expected Improvement", NeurIPS 2023).
// Pure.
//
// Under a scheduler that ends trials early, and with several objectives, an improvement counts from
// a margin above the best (the margin xi of Lizotte, "Practical Bayesian Optimization", 2008, in
// standard deviations of the targets), so that places of which the model knows little come before
// those near the best. A bad proposal costs a few steps there instead of a whole training, and
// targets are ranks, of which the best is not far above the next however much better a trial could
// be. With a margin of 1 a search of 40 trials goes from corner to corner of the space.
#pragma once

#include <Eigen/Core>

#include "tune/search/gp/posterior.h"

namespace tune::search::gp {

// Finite for any finite mean and best, also where the improvement itself is too small for a double.
double log_expected_improvement(double mean, double standard_deviation, double best);
Eigen::VectorXd log_expected_improvement(const Prediction& prediction, double best);

}  // namespace tune::search::gp
