#include "schedulers/asha_brackets.h"

#include <cmath>

#include <fmt/format.h>

#include "core/random.h"

namespace tune {

std::vector<double> rung_milestones(const AshaOptions& options, int bracket) {
  std::vector<double> milestones;
  double milestone = options.grace_period;
  for (int skipped = 0; skipped < bracket && milestone <= options.max_t; ++skipped) {
    milestone *= options.reduction_factor;
  }
  for (; milestone <= options.max_t; milestone *= options.reduction_factor) {
    milestones.push_back(milestone);
  }
  return milestones;
}

BracketDraw::BracketDraw(const AshaOptions& options) {
  const auto rungs = [&](int s) { return static_cast<double>(rung_milestones(options, s).size()); };
  for (int s = 0; s < options.brackets; ++s) {
    weights_.push_back(std::exp(rungs(s) - rungs(0)));
    sum_ += weights_.back();
  }
}

std::uint32_t BracketDraw::draw(std::uint64_t seed, TrialNumber trial) const {
  if (weights_.size() == 1) return 0;
  double left = RandomStream(seed, "asha_bracket", trial.value).uniform() * sum_;
  for (std::uint32_t s = 0; s + 1 < weights_.size(); ++s) {
    left -= weights_[s];
    if (left < 0) return s;
  }
  return static_cast<std::uint32_t>(weights_.size() - 1);
}

std::string bracket_line(const std::vector<RungText>& rungs) {
  std::string line = "Bracket:";
  for (auto rung = rungs.rbegin(); rung != rungs.rend(); ++rung) {
    line += fmt::format("{} Iter {:.3f}: {}", rung == rungs.rbegin() ? "" : " |", rung->milestone,
                        rung->value);
  }
  return line;
}

}  // namespace tune
