#include "trainables/torch/weight_average.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <utility>

#include "trainables/torch/checkpoint.h"
#include "trainables/torch/safetensors.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

constexpr const char* kAverageFile = "average.safetensors";
constexpr const char* kStateFile = "average.json";

// Half precision would swallow steps of a thousandth.
at::Tensor at_least_float(const at::Tensor& weight) {
  const bool is_half = weight.scalar_type() == at::kHalf || weight.scalar_type() == at::kBFloat16;
  return is_half ? weight.detach().to(at::kFloat) : weight.detach();
}

}  // namespace

WeightAverage::WeightAverage(const torch::nn::Module& model, double decay)
    : model_(model), decay_(decay) {
  if (!(decay > 0 && decay < 1)) {
    bad_input("ema_decay is " + std::to_string(decay) + ", between 0 and 1 is wanted");
  }
  for (const auto& parameter : model.named_parameters()) {
    if (!parameter.value().is_floating_point()) continue;
    names_.push_back(parameter.key());
    weights_.push_back(parameter.value());
    averages_.push_back(at_least_float(parameter.value()).clone());
  }
}

void WeightAverage::update() {
  const at::NoGradGuard no_gradients;
  ++updates_;
  const auto n = static_cast<double>(updates_);
  const double kept = std::min(decay_, (1 + n) / (10 + n));
  std::vector<at::Tensor> weights;
  for (const at::Tensor& weight : weights_) weights.push_back(at_least_float(weight));
  at::_foreach_lerp_(averages_, weights, 1 - kept);
}

WeightAverage::InUse::InUse(const WeightAverage& average) : average_(average) {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < average.weights_.size(); ++i) {
    weights_.push_back(average.weights_[i].detach().clone());
    average.weights_[i].copy_(average.averages_[i]);
  }
}

WeightAverage::InUse::~InUse() {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < weights_.size(); ++i) average_.weights_[i].copy_(weights_[i]);
}

CheckpointWriter WeightAverage::writer(const std::filesystem::path& directory,
                                       CheckpointCopies* copies) const {
  NamedTensors tensors;
  for (std::size_t i = 0; i < names_.size(); ++i) tensors.emplace_back(names_[i], averages_[i]);
  for (const auto& buffer : model_.named_buffers()) {
    tensors.emplace_back(buffer.key(), buffer.value());
  }
  if (copies != nullptr) {
    for (auto& [name, tensor] : tensors) tensor = copies->copy(tensor);
  }
  return all_of({[file = directory / kAverageFile, tensors = std::move(tensors)] {
                   write_safetensors(file, tensors);
                 },
                 state_writer(directory / kStateFile, {{"updates", updates_}})});
}

void WeightAverage::load(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kAverageFile;
  std::map<std::string, at::Tensor> saved;
  for (auto& [name, tensor] : read_safetensors(file)) saved.emplace(name, std::move(tensor));
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto found = saved.find(names_[i]);
    if (found == saved.end()) {
      bad_input("loading " + file.string() + ": the file has no " + names_[i]);
    }
    if (found->second.sizes() != averages_[i].sizes()) {
      bad_input("loading " + file.string() + ": " + names_[i] + " is " + describe(found->second) +
                " in the file and " + describe(averages_[i]) + " in the model");
    }
  }
  const auto updates = load_state(directory / kStateFile).get<std::int64_t>("updates");
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < names_.size(); ++i) averages_[i].copy_(saved.at(names_[i]));
  updates_ = updates;
}

}  // namespace tune
