// Importance: which parameters of an experiment set its best trials apart from all others, by
// PED-ANOVA (Watanabe, Bansal and Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter
// Importance in Arbitrary Subspaces", IJCAI 2023). Ours takes off what chance alone gives, so that
// parameters without effect get about 0 also of few trials, and says which ones stand out from
// chance. It compares trials that got about as far: one that a scheduler stopped early ranks among
// those that were stopped there. A parameter that matters only together with another one may be
// missed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedulers/trial_scheduler.h"

namespace tune {

struct Importance {
  struct Parameter {
    std::string path;         // "model/layers"
    std::string when = {};    // "optimiser is sgd": on what it depends; empty: it is always there
    double share = 0;         // of the importance of all; these add up to 1, or all are 0
    bool stands_out = false;  // chance alone would hardly ever give as much
    std::size_t trials = 0;   // with a value of the metric that have it
  };
  std::string metric;
  Mode mode = Mode::kMax;
  std::size_t trials = 0;   // that have a value of the metric
  std::size_t best = 0;     // how many of them are the best ones
  std::size_t outside = 0;  // more that have one, but lie outside the space: they do not count
  std::vector<Parameter> parameters;  // that are searched; the most important first
};

inline constexpr std::size_t kFewestForImportance = 20;  // trials

}  // namespace tune
