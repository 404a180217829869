#include "trainables/torch/optimizer_state.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <map>
#include <typeindex>
#include <typeinfo>

#include "trainables/torch/fused_optimizers.h"

namespace tune {
namespace {

using torch::optim::OptimizerParamState;
using TensorsOfState = std::vector<at::Tensor*> (*)(OptimizerParamState& state);

template <class State>
std::vector<at::Tensor*> of_adam(OptimizerParamState& state) {
  auto& adam = static_cast<State&>(state);
  return {&adam.exp_avg(), &adam.exp_avg_sq(), &adam.max_exp_avg_sq()};
}

std::vector<at::Tensor*> of_sgd(OptimizerParamState& state) {
  return {&static_cast<torch::optim::SGDParamState&>(state).momentum_buffer()};
}

std::vector<at::Tensor*> of_rmsprop(OptimizerParamState& state) {
  auto& rmsprop = static_cast<torch::optim::RMSpropParamState&>(state);
  return {&rmsprop.square_avg(), &rmsprop.momentum_buffer(), &rmsprop.grad_avg()};
}

std::vector<at::Tensor*> of_adagrad(OptimizerParamState& state) {
  return {&static_cast<torch::optim::AdagradParamState&>(state).sum()};
}

// Null for another class.
TensorsOfState tensors_of_state(const torch::optim::Optimizer& optimizer) {
  static const std::map<std::type_index, TensorsOfState> known = {
      {typeid(torch::optim::Adam), of_adam<torch::optim::AdamParamState>},
      {typeid(FusedAdam), of_adam<torch::optim::AdamParamState>},
      {typeid(torch::optim::AdamW), of_adam<torch::optim::AdamWParamState>},
      {typeid(FusedAdamW), of_adam<torch::optim::AdamWParamState>},
      {typeid(torch::optim::SGD), of_sgd},
      {typeid(FusedSgd), of_sgd},
      {typeid(torch::optim::RMSprop), of_rmsprop},
      {typeid(torch::optim::Adagrad), of_adagrad},
  };
  const auto found = known.find(typeid(optimizer));
  return found == known.end() ? nullptr : found->second;
}

}  // namespace

bool has_known_state(const torch::optim::Optimizer& optimizer) {
  return tensors_of_state(optimizer) != nullptr;
}

StateInCopies::StateInCopies(const torch::optim::Optimizer& optimizer, CheckpointCopies& copies) {
  const TensorsOfState tensors_of = tensors_of_state(optimizer);
  for (const auto& [parameter, state] : optimizer.state()) {
    for (at::Tensor* tensor : tensors_of(*state)) {
      if (!tensor->defined()) continue;
      own_.emplace_back(tensor, *tensor);
      *tensor = copies.copy(*tensor);
    }
  }
}

StateInCopies::~StateInCopies() {
  for (auto& [place, own] : own_) *place = std::move(own);
}

}  // namespace tune
