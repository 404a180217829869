// The acquisition function: the logarithm of the expected improvement over the best (Jones,
// Schonlau and Welch, "Efficient Global Optimization of Expensive Black-Box Functions", 1998; of
// its logarithm: Ament et al., "Unexpected Improvements to Expected Improvement", NeurIPS 2023).
// Pure.
#pragma once

#include <Eigen/Core>

#include "tune/search/gp/posterior.h"

namespace tune::search::gp {

// Finite for any finite mean and best, also where the improvement itself is too small for a double.
double log_expected_improvement(double mean, double standard_deviation, double best);
Eigen::VectorXd log_expected_improvement(const Prediction& prediction, double best);

}  // namespace tune::search::gp
