// CMA-ES with categories and margin (update.h) as proposals one by one: the searcher `cma_es` but
// for the events around it. For spaces whose parameters do not depend on choices. Pure.
//
// A generation is made of the first results that are there, not of trials that were begun together:
// proposals are drawn from the newest distribution whenever one is asked for, and as many results
// as the population has make the next one. So no trial is waited for, and none that ends is lost,
// as it is where a generation takes results of its own trials alone: one whose generation is over
// counts in the next, drawn nearer to the mean if it is too far from it.
//
// Ours differs from the papers:
// - Losses are ranks: trials that completed by value, then those that ended before or are kept
// back,
//   the further the better, then those that failed. So diverged values and values of unequal
//   numbers of steps do no harm. A trial counts once, when it first ends or pauses.
// - A configuration that was tried is not proposed again. Drawing it counts as its result.
// - When standard deviations are all below 1e-4 of the range, or no new configuration is drawn any
//   more, it begins anew with twice the population, around a point drawn (Auger and Hansen, "A
//   Restart CMA Evolution Strategy With Increasing Population Size", 2005).
// - Results of earlier experiments decide where it begins (warm_start.h).
// - A population of results that are all alike changes nothing, and proposals say so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tune/search/cma_es/distribution.h"
#include "tune/search/proposer.h"

namespace tune::search::cma_es {

struct Options {
  std::size_t population = 0;  // of the first run; 0: 4 + floor(3 ln d) in d dimensions
};

// A sample of a distribution that became a trial, by the fingerprint of its point.
struct Sample {
  std::uint64_t fingerprint = 0;
  std::uint64_t generation = 0;  // in which it was drawn
  Drawn drawn;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.fingerprint, s.generation, s.drawn);
  }
};

struct Result {
  Sample sample;
  bool completed = false;
  std::uint64_t iteration = 0;
  double value = 0;  // larger is better
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.sample, s.completed, s.iteration, s.value);
  }
};

// The state that is carried from one question to the next.
struct State {
  Distribution distribution;
  std::vector<Sample> open;     // whose results are not known
  std::vector<Result> results;  // fewer than the population, of which the next generation is made
  std::uint64_t restarts = 0;
  std::string note = {};  // of proposals until the next generation
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.distribution, s.open, s.results, s.restarts, s.note);
  }
};

struct Answer {
  std::vector<Proposal> proposals;
  State state;
};

// `state` is nothing before the first answer.
Answer propose(const History& known, std::size_t count, const State* state,
               const Encoding& encoding, const Options& options, RandomStream& random);

class CmaEsProposer : public Proposer {
 public:
  explicit CmaEsProposer(Options options = {}) : options_(options) {}
  void check(const Encoding& encoding) const override;
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override;
  // The first population, or its smallest.
  std::size_t start_up() const override { return std::max<std::size_t>(options_.population, 4); }

 private:
  Options options_;
};

}  // namespace tune::search::cma_es
