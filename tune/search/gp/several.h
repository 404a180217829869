// gp with several objectives, and under constraints. Pure.
//
// Each objective has a Gaussian process of its own, of targets as those of one objective
// (targets.h); so does each constraint, of the margin by which it is kept (margins.h). For every
// proposal a weight for each objective is drawn, evenly from those that sum to 1, and the augmented
// Chebyshev function of the targets with these weights, min of w (t - u) + .05 sum of w (t - u)
// with u the best target seen, makes one objective of them (Knowles, "ParEGO: A Hybrid Algorithm
// With On-Line Landscape Approximation for Expensive Multiobjective Optimization Problems", 2006).
// Other weights look at another part of the front, so that in time all of it is looked at; pending
// trials and drawn proposals are as with one objective.
//
// The acquisition is the logarithm of the expected improvement of that function over its best among
// the trials that keep all constraints, and of the probability that the point keeps them (Gardner
// and others, "Bayesian Optimization with Inequality Constraints", ICML 2014). While no trial keeps
// them it is that probability alone.
//
// Ours differs: ParEGO fits one process to the function's own values, anew for all weights; a
// process for each objective keeps what it has learnt, and is smooth where a minimum of several is
// not. The expectation for two objectives and more has no formula then: it is a mean over 32 draws,
// the improvement of each smoothed (as in Ament et al., see acquisition.h), so that it never
// vanishes. While results are few it is averaged over draws of length scales as with one objective;
// the first draw of one process goes with the first of the others, and so on, as they do not depend
// on each other. With two objectives and more an improvement counts from the margin of
// acquisition.h above the best whether trials are stopped early or not: the front is found further
// out.
#pragma once

#include <cstddef>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/gp/fit.h"
#include "tune/search/gp/propose.h"
#include "tune/search/gp/training_set.h"
#include "tune/search/proposal.h"

namespace tune::search::gp {

struct SeveralQuestion {
  TrainingSet known;      // results have numbers
  std::size_t goals = 1;  // of these numbers, the first
  std::vector<Fit> fits;  // of the last answer
  std::size_t count = 1;  // as Question's
  bool in_haste = false;
};

struct SeveralAnswer {
  std::vector<Proposal> proposals;
  std::vector<Fit> fits;  // of objectives, then of constraints
};

SeveralAnswer propose_several(const SeveralQuestion& question, const Encoding& encoding,
                              const Options& options, RandomStream& random);

}  // namespace tune::search::gp
