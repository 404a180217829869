// Halton's sequence with scrambled digits: configurations that fill the space more evenly than
// draws (Halton, "On the efficiency of certain quasi-random sequences of points in evaluating
// multi-dimensional integrals", 1960; Owen, "A randomized Halton algorithm in R", 2017, whose
// random permutation for each digit of each dimension this is). Not for more than some hundred
// dimensions: the later ones are no more even than draws.
//
// Point k depends on the seed and k alone, whatever the order of events, and each parameter has a
// dimension of its own, also those that depend on a choice. So a configuration may come twice in a
// space that has few. Where point k does not hold (`where`), it is that of the first of other
// seeds' sequences that does. Pure.
#pragma once

#include <cstdint>

#include "tune/search/encoding.h"
#include "tune/search/proposer.h"

namespace tune::search {

UnitPoint halton_point(const Encoding& encoding, std::uint64_t seed, std::uint64_t index);

// Proposal k is point k of the experiment's seed. It learns nothing.
class HaltonProposer : public Proposer {
 public:
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override;
  bool takes_several_objectives() const override { return true; }  // it needs none
  bool learns() const override { return false; }
};

}  // namespace tune::search
