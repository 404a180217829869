// The proposer behind tune::gp: asks propose() with what the history holds. Pure.
#pragma once

#include "tune/search/gp/propose.h"
#include "tune/search/proposer.h"

namespace tune::search::gp {

class GpProposer : public Proposer {
 public:
  explicit GpProposer(Options options) : options_(options) {}
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override;
  std::size_t start_up() const override { return options_.start_up; }

 private:
  Options options_;
};

}  // namespace tune::search::gp
