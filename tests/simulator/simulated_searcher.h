// A proposer for the simulator: cheap, and each proposal tells of the moment it was made for, so
// that an answer of another moment is another one. Now and then it fails.
#pragma once

#include "tune/search/proposer.h"

namespace tune::simulator {

class SimulatedProposer : public Proposer {
 public:
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override;
};

}  // namespace tune::simulator
