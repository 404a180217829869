#include "trainables/torch/grad_scaler.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/optimizer.h>

#include <string>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "trainables/torch/fused_optimizers.h"

namespace tune {
namespace {

void expect(bool holds, const char* name, double value, const char* wanted) {
  if (holds) return;
  throw Error(ErrorCode::kBadInput, std::string(name) + " of a gradient scaler is " +
                                        std::to_string(value) + ", " + wanted + " is wanted");
}

// The gradients' values by device and type, which is how they are unscaled at once.
using Groups =
    std::map<std::tuple<at::DeviceType, at::DeviceIndex, at::ScalarType>, std::vector<at::Tensor>>;

Groups gradients_of(torch::optim::Optimizer& optimizer) {
  Groups groups;
  for (auto& group : optimizer.param_groups()) {
    for (at::Tensor& parameter : group.params()) {
      const at::Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      // Repeated entries of a sparse one could add up to infinity only when they are added.
      if (gradient.is_sparse()) parameter.mutable_grad() = gradient.coalesce();
      const at::Tensor values = gradient.is_sparse() ? parameter.grad()._values() : gradient;
      const at::Device device = values.device();
      groups[{device.type(), device.index(), values.scalar_type()}].push_back(values);
    }
  }
  return groups;
}

// 1 when any of them is not 0, else 0. A fused optimizer's parameters are on one device.
at::Tensor on_one_device(const std::vector<at::Tensor>& found_inf) {
  if (found_inf.empty()) return at::zeros({});  // no gradients: there is nothing to step
  for (const at::Tensor& found : found_inf) {
    if (found.device() == found_inf.front().device()) continue;
    throw Error(ErrorCode::kBadInput,
                "a fused optimizer has parameters on several devices: give each device its own");
  }
  return at::stack(found_inf).amax().clamp_max(1);
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options),
      scale_(at::full({1}, options.scale, at::kFloat)),
      tracker_(at::zeros({1}, at::kInt)) {
  expect(options.scale > 0, "scale", options.scale, "above 0");
  expect(options.growth > 1, "growth", options.growth, "above 1");
  expect(options.backoff > 0 && options.backoff < 1, "backoff", options.backoff, "between 0 and 1");
  expect(options.growth_interval >= 1, "growth_interval",
         static_cast<double>(options.growth_interval), "at least 1");
}

at::Tensor GradScaler::scale(const at::Tensor& loss) {
  if (!options_.enabled) return loss;
  place(loss.device());
  // A product of halves would be infinite from 65520 on.
  return loss * scale_.view(loss.sizes().empty() ? at::IntArrayRef{} : at::IntArrayRef{1});
}

void GradScaler::unscale(torch::optim::Optimizer& optimizer) {
  const bool again = options_.enabled && is_unscaled(optimizer);
  TUNE_CHECK(!again);
  Unscaled& unscaled = unscaled_[&optimizer];
  if (!options_.enabled) return;
  const at::NoGradGuard no_gradients;
  const at::Tensor inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  for (auto& [key, gradients] : gradients_of(optimizer)) {
    const at::Device device = gradients.front().device();
    at::Tensor found_inf = at::zeros({1}, at::TensorOptions(at::kFloat).device(device));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inverse.to(device));
    unscaled.found_inf.push_back(found_inf);
  }
}

bool GradScaler::is_unscaled(torch::optim::Optimizer& optimizer) const {
  return unscaled_.contains(&optimizer);
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  if (!is_unscaled(optimizer)) unscale(optimizer);
  Unscaled& unscaled = unscaled_[&optimizer];
  TUNE_CHECK(!unscaled.stepped);
  unscaled.stepped = true;
  if (auto* fused = dynamic_cast<FusedOptimizer*>(&optimizer)) {
    fused->step_unless(on_one_device(unscaled.found_inf));
    return true;
  }
  for (const at::Tensor& found_inf : unscaled.found_inf) {
    if (found_inf.item<float>() != 0) return false;
  }
  optimizer.step();
  return true;
}

void GradScaler::update() {
  if (!options_.enabled) return unscaled_.clear();
  TUNE_CHECK(!unscaled_.empty());
  at::Tensor found_inf = at::zeros({1}, scale_.options());
  for (const auto& [optimizer, unscaled] : unscaled_) {
    for (const at::Tensor& found : unscaled.found_inf) found_inf += found.to(scale_.device());
  }
  at::_amp_update_scale_(scale_, tracker_, found_inf, options_.growth, options_.backoff,
                         options_.growth_interval);
  unscaled_.clear();
}

double GradScaler::scale() const {
  return options_.enabled ? scale_.item<float>() : 1;
}

Value GradScaler::state() const {
  return {{"scale", scale()}, {"growth_tracker", tracker_.item<int>()}};
}

void GradScaler::load_state(const Value& state) {
  if (!options_.enabled) return;
  const auto scale = state.get<double>("scale");
  const auto tracker = state.get<int>("growth_tracker");
  expect(scale > 0, "the loaded scale", scale, "above 0");
  expect(tracker >= 0, "the loaded growth_tracker", tracker, "at least 0");
  scale_.fill_(scale);
  tracker_.fill_(tracker);
  unscaled_.clear();
}

void GradScaler::place(const at::Device& device) {
  if (scale_.device() == device) return;
  scale_ = scale_.to(device);
  tracker_ = tracker_.to(device);
}

}  // namespace tune
