// The rungs and brackets of both forms of ASHA: where rungs are, and which bracket a trial joins.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "schedulers/asha.h"

namespace tune {

// Milestones grace * factor^(s + k) <= max_t of bracket s, exact for whole numbers below 2^53.
std::vector<double> rung_milestones(const AshaOptions& options, int bracket);

// The number of a bracket's rungs, from low to high, that a trial has reached at this time;
// `behind` of them it had passed before.
template <class Rung>
std::uint32_t rungs_reached(const std::vector<Rung>& rungs, std::uint32_t behind, double time) {
  while (behind < rungs.size() && rungs[behind].milestone() <= time) ++behind;
  return behind;
}

// The next report of a trial that is judged: at its next rung, or at max_t.
template <class Rung>
std::optional<double> next_judged(const AshaOptions& options, const std::vector<Rung>& rungs,
                                  std::uint32_t next) {
  if (next < rungs.size()) return rungs[next].milestone();
  if (options.stop_last_trials) return options.max_t;
  return std::nullopt;
}

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
