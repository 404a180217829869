// Bayesian optimisation by a Gaussian process on each trial's value that counts (see
// training_set.h): the searcher `gp` but for the events around it. Pure: the same question and
// random stream give the same proposals; it reads copies, so that it can run in another thread.
//
// A proposal is drawn as the space draws while there are too few results, and now and then on
// purpose. Else it is the point with the best acquisition among candidates drawn and candidates
// near the best trials, improved by rounds of candidates ever nearer to the best of them. In haste
// every 32nd of them is searched for like that, and the others by short searches from the best
// candidates so far (candidate_pool.h), in single precision (rough_posterior.h): many proposals are
// wanted where trials are short, and places stand empty for as long as they take. No configuration
// is proposed that a trial had, as long as there are others. Where numbers fail (a covariance that
// is not positive definite, results that are all alike) the proposal is drawn, and says so.
#pragma once

#include <cstddef>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/gp/fit.h"
#include "tune/search/gp/training_set.h"
#include "tune/search/proposal.h"

namespace tune::search::gp {

struct Options {
  std::size_t start_up = 5;                      // results before there is a model; at least 2
  double random_share = 0.1;                     // of the proposals after that
  std::size_t searched_in_full = kFewProposals;  // of one question
  std::size_t averaged_up_to = kFewResults;      // results
  double margin = 0.3;                           // of an improvement: see acquisition.h
};

struct Question {
  TrainingSet known;
  Fit fit;                // of the last answer
  std::size_t count = 1;  // how many proposals, each knowing those before it
  bool in_haste = false;  // with less effort for each; so are more than searched_in_full
};

struct Answer {
  std::vector<Proposal> proposals;
  Fit fit;  // to be asked with next
};

Answer propose(const Question& question, const Encoding& encoding, const Options& options,
               RandomStream& random);

}  // namespace tune::search::gp
