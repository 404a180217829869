// NSGA-II (Deb and others, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE
// Transactions on Evolutionary Computation 6, 2002): the searcher `nsga2` but for the events around
// it. Pure.
//
// The parents of a proposal are two of the 50 best trials, each the better of two drawn. Their
// numbers are crossed by simulated binary crossover, with a chance of .9, their choices are mixed,
// and each parameter is changed with a chance of 1 / d: a number by polynomial mutation, of few
// values to the next one, a choice to another option.
//
// Ours differs:
// - Distribution indices are 2 for crossover and 5 for mutation. The 20 and 20 of the paper, which
//   has 25,000 evaluations, keep children so close to their parents that within some hundred trials
//   a front was found hardly better than by drawing.
// - There are no generations. The best are the first of all results in the order of
//   schedulers/fronts.h (its epsilon net in place of crowding distance), at the moment of asking:
//   no trial is waited for, and none is forgotten.
// - Which values compare under a scheduler that stops trials: tune/search/comparable_results.h.
// - Parameters that depend on a choice are crossed where both parents have them, inherited from the
//   one that has them, or else drawn.
// - No configuration is proposed that a trial had, as long as others are found.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/search/proposer.h"

namespace tune::search::nsga2 {

struct Options {
  std::size_t population = 50;  // of parents; so many results make the start, drawn; at least 2
  double crossover = 0.9;       // its chance
};

// Neighbours are the parents.
std::vector<Proposal> propose(const ProposerQuestion& question, const Encoding& encoding,
                              const Options& options, RandomStream& random);

// Keeps no state.
class Nsga2Proposer : public Proposer {
 public:
  explicit Nsga2Proposer(Options options = {}) : options_(options) {}
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override;
  std::size_t start_up() const override { return options_.population; }
  bool takes_several_objectives() const override { return true; }

 private:
  Options options_;
};

}  // namespace tune::search::nsga2
