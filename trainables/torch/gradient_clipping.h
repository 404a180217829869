// Limits of gradients, before an optimizer's step. Nothing here waits for a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace torch::optim {
class Optimizer;
}

namespace tune {

// Both above 0, else kBadInput where it is used. With both, values are limited first.
struct GradientClip {
  std::optional<double> norm = {};   // of all gradients together: the Euclidean norm, as Python's
  std::optional<double> value = {};  // of each number's magnitude
};

void check(const GradientClip& clip);

// Changes the gradients of the optimizer's parameters in place; averages over the ranks, unscaled.
// Gives the norm that they had before it was limited, a float on their device; undefined without a
// limit of the norm, or without gradients. When the norm is not a number, neither is any gradient.
at::Tensor clip_gradients(const torch::optim::Optimizer& optimizer, const GradientClip& clip);

}  // namespace tune
