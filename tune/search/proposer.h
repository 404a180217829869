// Proposer: the part of a model-based searcher that makes proposals of what is known. ModelSearcher
// (tune/search/model_searcher.h) is the other part, the same for all: it has the encoding, the
// history, points_to_evaluate, the random streams, and save and restore.
//
// A question is a plain value, and an answer follows from it alone, with the encoding and the
// random stream. So proposals are made in another thread while the searcher is told more, a resumed
// sweep reads them in its journal, and `replay` makes the same ones again. What a proposer wants to
// keep from one question to the next (a fit, a covariance) is the state in its answer; it has no
// other memory.
//
// A proposer of its own kind, `p`, is tune/search/p/ with a pure function `propose` in the
// namespace tune::search::p (tune::p is the function that users call), and a Proposer that calls
// it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/history.h"
#include "tune/search/proposal.h"

namespace tune {

struct ProposerQuestion {
  // All trials. Those that were proposed and have not begun are there as well: they run, and have
  // no number.
  History known;
  std::string state = {};      // of the answer before this one; empty: there was none
  std::uint64_t proposed = 0;  // how many proposals were made before these
  std::size_t count = 1;       // how many are wanted, each knowing those before it; at least 1
  std::uint64_t seed = 0;      // the experiment's
  // `count` and those that wait to begin. More than `count` are kept in stock where trials are so
  // short that they are used up while others are made.
  std::size_t in_stock = 0;
  bool is_last = false;  // no more will be asked for
};

struct ProposerAnswer {
  std::vector<Proposal> proposals;  // `count` of them
  std::string state = {};           // MessagePack, or whatever the proposer reads again
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  // Once, before any question. Throws Error (kBadInput), naming the keys, for a space that it
  // cannot search.
  virtual void check(const Encoding& /*encoding*/) const {}
  // Whether it heeds the several numbers of values, where the history has such
  // (History::goals()).
  virtual bool takes_several_objectives() const { return false; }
  // Called in any thread. What it throws costs no sweep: the proposals are drawn then, as the space
  // draws, with the reason in their notes. A state that is not its own counts as none.
  virtual ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                                 RandomStream& random) const = 0;
  // Whether it learns from results, so that there has to be a metric.
  virtual bool learns() const { return true; }
  // The number of results there must be before a model is asked, and of proposals that a sweep
  // begins with; 0: it asks no model, or from the first.
  virtual std::size_t start_up() const { return 0; }
};

}  // namespace tune
