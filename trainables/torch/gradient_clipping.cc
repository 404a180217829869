#include "trainables/torch/gradient_clipping.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/optimizer.h>

#include <string>
#include <vector>

#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

constexpr double kNormFloor = 1e-6;  // Python's, against a division by 0

void expect_limit(const char* name, const std::optional<double>& limit) {
  if (!limit || *limit > 0) return;
  bad_input(std::string("clip.") + name + " is " + std::to_string(*limit) + ", above 0 is wanted");
}

// The numbers of each gradient: of a sparse one those that are there, each row once.
std::vector<at::Tensor> gradient_values(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> values;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      at::Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.is_sparse()) {
        gradient = gradient.coalesce();
        parameter.mutable_grad() = gradient;
        gradient = gradient._values();
      }
      values.push_back(gradient);
    }
  }
  return values;
}

}  // namespace

void check(const GradientClip& clip) {
  expect_limit("norm", clip.norm);
  expect_limit("value", clip.value);
}

at::Tensor clip_gradients(const torch::optim::Optimizer& optimizer, const GradientClip& clip) {
  if (!clip.norm && !clip.value) return {};
  const at::NoGradGuard no_gradients;
  const std::vector<at::Tensor> values = gradient_values(optimizer);
  if (values.empty()) return {};
  if (clip.value) {
    at::_foreach_clamp_min_(values, -*clip.value);
    at::_foreach_clamp_max_(values, *clip.value);
  }
  if (!clip.norm) return {};
  std::vector<at::Tensor> norms = at::_foreach_norm(values);
  for (at::Tensor& norm : norms) norm = norm.to(at::kFloat);
  const at::Tensor norm = at::linalg_vector_norm(at::stack(norms));
  at::_foreach_mul_(values, (*clip.norm / (norm + kNormFloor)).clamp_max(1.0));
  return norm;
}

}  // namespace tune
