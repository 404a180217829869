// The tree-structured Parzen estimator (Bergstra et al., "Algorithms for Hyper-Parameter
// Optimization", NIPS 2011) with the rules of Optuna's TPESampler, version 5: the searcher `tpe`
// but for the events around it. Pure.
//
// Of 24 points drawn from the density of the good trials the one is proposed at which that density
// is largest in proportion to the density of all others (tune/search/tpe/evidence.h, density.h).
// Trials that run count among the others, so that places where something runs are left alone.
//
// Ours differs:
// - Parameters that depend on a choice have densities of their own, of the trials in which they are
//   active. The choice is drawn first, with what stands beside it, and then what it makes active.
//   Optuna draws such parameters one by one; with `group`, the choice and what depends on it
//   without regard to each other.
// - No configuration is proposed that a trial had, as long as others are found.
// - Once a scheduler keeps back or ends trials, a third of the proposals is drawn as the space
//   draws, as BOHB does: what is learnt of few steps may be wrong.
// - Where nothing can be learnt (results that are all alike) a proposal is drawn, and says so.
#pragma once

#include <cstddef>

#include "tune/search/proposer.h"

namespace tune::search::tpe {

struct Options {
  std::size_t start_up = 10;      // results before there is a model; at least 2
  std::size_t draws = 24;         // of which the best is proposed; at least 1
  double random_share = 1.0 / 3;  // of the proposals after that, under a scheduler that stops
};

// Of an expectation, `acquisition` is the logarithm of the proportion; there is no mean and no
// standard deviation, and both are 0. Neighbours are good trials.
std::vector<Proposal> propose(const ProposerQuestion& question, const Encoding& encoding,
                              const Options& options, RandomStream& random);

// Keeps no state.
class TpeProposer : public Proposer {
 public:
  explicit TpeProposer(Options options = {}) : options_(options) {}
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override;
  std::size_t start_up() const override { return options_.start_up; }
  bool takes_several_objectives() const override { return true; }

 private:
  Options options_;
};

}  // namespace tune::search::tpe
