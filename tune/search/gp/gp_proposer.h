// The proposer behind tune::gp: asks propose() with what the history holds, propose_several() where
// values have several numbers, and NSGA-II beyond kMostTrialsOfSeveral trials of several
// objectives: a front has more members than a model is fitted to then. Pure.
#pragma once

#include <cstddef>

#include "tune/search/gp/propose.h"
#include "tune/search/proposer.h"

namespace tune::search::gp {

inline constexpr std::size_t kMostTrialsOfSeveral = 500;

class GpProposer : public Proposer {
 public:
  explicit GpProposer(Options options) : options_(options) {}
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override;
  std::size_t start_up() const override { return options_.start_up; }
  bool takes_several_objectives() const override { return true; }

 private:
  bool is_in_haste(const ProposerQuestion& question, bool last_was) const;

  Options options_;
};

}  // namespace tune::search::gp
