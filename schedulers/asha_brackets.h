// The rungs and brackets of both forms of ASHA: where rungs are, and which bracket a trial joins.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "schedulers/asha.h"

namespace tune {

// Milestones grace * factor^(s + k) <= max_t of bracket s, exact for whole numbers below 2^53.
std::vector<double> rung_milestones(const AshaOptions& options, int bracket);

// Bracket s with probability exp(rungs of s) / sum over all: those with more rungs are likelier.
class BracketDraw {
 public:
  explicit BracketDraw(const AshaOptions& options);
  std::uint32_t draw(std::uint64_t seed, TrialNumber trial) const;  // the same one again

 private:
  std::vector<double> weights_;
  double sum_ = 0;
};

// "Bracket: Iter 3.000: None | Iter 1.000: 0.41" of rungs from low to high.
struct RungText {
  double milestone = 0;
  std::string value;
};
std::string bracket_line(const std::vector<RungText>& rungs);

}  // namespace tune
