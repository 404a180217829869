// Draws of length scales and noise from their posterior density, by slice sampling (Neal, "Slice
// Sampling", Annals of Statistics 31, 2003): an acquisition is averaged over them while results are
// few (Snoek, Larochelle and Adams, "Practical Bayesian Optimization of Machine Learning
// Algorithms", NIPS 2012). Pure.
//
// Few results are explained by many length scales. The simpler way, the likeliest alone, fails
// where a parameter has a cliff (a learning rate that diverges): it takes all but one or two
// parameters for irrelevant, is sure of it, and the search goes from corner to corner of the space.
// With many results the likeliest says nearly all there is to say, and draws take as long as fits.
//
// One chain begins at the likeliest. Two rounds of its coordinates come before each draw. Ours
// differs: brackets have a fixed width, without stepping out, and a round moves at most 10
// coordinates.
#pragma once

#include <Eigen/Core>

#include <vector>

#include "core/random.h"
#include "tune/search/gp/fit.h"

namespace tune::search::gp {

// Eight. One column of `points` for each of `targets`, to which `likeliest` was fitted.
std::vector<Scales> drawn_scales(const Eigen::MatrixXd& points, const Eigen::VectorXd& targets,
                                 const Scales& likeliest, RandomStream& random);

}  // namespace tune::search::gp
