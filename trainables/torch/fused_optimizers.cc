#include "trainables/torch/fused_optimizers.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <functional>
#include <tuple>
#include <vector>

#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

using torch::optim::Optimizer;
using FoundInf = std::optional<at::Tensor>;
using Tensors = std::vector<at::Tensor>;

// One operation takes tensors of one device and type. SGD's first step is another one.
using TensorKind = std::tuple<at::DeviceType, at::DeviceIndex, at::ScalarType, bool>;

TensorKind kind_of(const at::Tensor& parameter, bool is_first = false) {
  return {parameter.device().type(), parameter.device().index(), parameter.scalar_type(), is_first};
}

at::Tensor loss_of(const Optimizer::LossClosure& closure) {
  if (!closure) return {};
  const at::AutoGradMode with_gradients(true);
  return closure();
}

// Undefined for a parameter that takes no part in this step.
const at::Tensor& dense_gradient(const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  if (gradient.defined() && gradient.is_sparse()) {
    bad_input("fused optimizers do not take sparse gradients: take LibTorch's SGD or Adagrad");
  }
  return gradient;
}

// The state of a parameter; a new one is begun by `begin`.
template <class State>
State& state_of(Optimizer& optimizer, const at::Tensor& parameter,
                const std::function<void(State&)>& begin) {
  auto& state = optimizer.state()[parameter.unsafeGetTensorImpl()];
  if (!state) {
    auto fresh = std::make_unique<State>();
    begin(*fresh);
    state = std::move(fresh);
  }
  return static_cast<State&>(*state);
}

// ---- Adam and AdamW -----------------------------------------------------------------------------

// Options, state and operation of either.
template <class Base>
struct AdamKind;
template <>
struct AdamKind<torch::optim::Adam> {
  using Options = torch::optim::AdamOptions;
  using State = torch::optim::AdamParamState;
  static void step(auto&&... arguments) { at::_fused_adam_(arguments...); }
};
template <>
struct AdamKind<torch::optim::AdamW> {
  using Options = torch::optim::AdamWOptions;
  using State = torch::optim::AdamWParamState;
  static void step(auto&&... arguments) { at::_fused_adamw_(arguments...); }
};

struct AdamLists {
  Tensors parameters, gradients, averages, squares, largest_squares, steps;
};

template <class State>
void add_parameter(AdamLists& lists, Optimizer& optimizer, const at::Tensor& parameter,
                   StepsOnDevice& steps, bool amsgrad) {
  State& state = state_of<State>(optimizer, parameter, [&](State& fresh) {
    fresh.step(0);
    fresh.exp_avg(at::zeros_like(parameter));
    fresh.exp_avg_sq(at::zeros_like(parameter));
    if (amsgrad) fresh.max_exp_avg_sq(at::zeros_like(parameter));
  });
  at::Tensor& step = steps[parameter.unsafeGetTensorImpl()];
  if (!step.defined()) {
    step = at::full({}, state.step(), parameter.options().dtype(at::kFloat).requires_grad(false));
  }
  lists.parameters.push_back(parameter);
  lists.gradients.push_back(parameter.grad());
  lists.averages.push_back(state.exp_avg());
  lists.squares.push_back(state.exp_avg_sq());
  if (amsgrad) lists.largest_squares.push_back(state.max_exp_avg_sq());
  lists.steps.push_back(step);
}

template <class Base>
void adam_step(Optimizer& optimizer, StepsOnDevice& steps, const FoundInf& found_inf) {
  const at::NoGradGuard no_gradients;
  for (auto& group : optimizer.param_groups()) {
    const auto& options = static_cast<const typename AdamKind<Base>::Options&>(group.options());
    std::map<TensorKind, AdamLists> kinds;
    for (const at::Tensor& parameter : group.params()) {
      if (!dense_gradient(parameter).defined()) continue;
      add_parameter<typename AdamKind<Base>::State>(kinds[kind_of(parameter)], optimizer, parameter,
                                                    steps, options.amsgrad());
    }
    for (auto& [kind, lists] : kinds) {
      at::_foreach_add_(lists.steps, 1);
      AdamKind<Base>::step(lists.parameters, lists.gradients, lists.averages, lists.squares,
                           lists.largest_squares, lists.steps, options.lr(),
                           std::get<0>(options.betas()), std::get<1>(options.betas()),
                           options.weight_decay(), options.eps(), options.amsgrad(),
                           /*maximize=*/false, /*grad_scale=*/FoundInf(), found_inf);
      if (found_inf) at::_foreach_sub_(lists.steps, Tensors(lists.steps.size(), *found_inf));
    }
  }
}

// Into the state that is written to files.
template <class State>
void write_steps(const Optimizer& optimizer, const StepsOnDevice& steps) {
  for (const auto& [parameter, state] : optimizer.state()) {
    const auto found = steps.find(parameter);
    if (found == steps.end()) continue;
    static_cast<State&>(*state).step(found->second.template item<std::int64_t>());
  }
}

// ---- SGD ----------------------------------------------------------------------------------------

struct SgdLists {
  Tensors parameters, gradients, momenta;
};

void sgd_step(Optimizer& optimizer, const FoundInf& found_inf) {
  using State = torch::optim::SGDParamState;
  const at::NoGradGuard no_gradients;
  for (auto& group : optimizer.param_groups()) {
    const auto& options = static_cast<const torch::optim::SGDOptions&>(group.options());
    const bool has_momentum = options.momentum() != 0;
    std::map<TensorKind, SgdLists> kinds;
    for (const at::Tensor& parameter : group.params()) {
      if (!dense_gradient(parameter).defined()) continue;
      bool is_first = false;
      State* state = nullptr;
      if (has_momentum) {
        // Zeros: should the first step be left out, the next finds what it may add to.
        state = &state_of<State>(optimizer, parameter, [&](State& fresh) {
          fresh.momentum_buffer(at::zeros_like(parameter));
          is_first = true;
        });
      }
      SgdLists& lists = kinds[kind_of(parameter, is_first)];
      lists.parameters.push_back(parameter);
      lists.gradients.push_back(parameter.grad());
      if (state != nullptr) lists.momenta.push_back(state->momentum_buffer());
    }
    for (auto& [kind, lists] : kinds) {
      at::_fused_sgd_(lists.parameters, lists.gradients, lists.momenta, options.weight_decay(),
                      options.momentum(), options.lr(), options.dampening(), options.nesterov(),
                      /*maximize=*/false, /*is_first_step=*/std::get<3>(kind),
                      /*grad_scale=*/{}, found_inf);
    }
  }
}

}  // namespace

template <class Base>
at::Tensor FusedAdamOf<Base>::step(Optimizer::LossClosure closure) {
  const at::Tensor loss = loss_of(closure);
  adam_step<Base>(*this, steps_, {});
  return loss;
}

template <class Base>
void FusedAdamOf<Base>::step_unless(const at::Tensor& found_inf) {
  adam_step<Base>(*this, steps_, found_inf);
}

template <class Base>
void FusedAdamOf<Base>::save(torch::serialize::OutputArchive& archive) const {
  write_steps<typename AdamKind<Base>::State>(*this, steps_);
  Base::save(archive);
}

template <class Base>
void FusedAdamOf<Base>::load(torch::serialize::InputArchive& archive) {
  steps_.clear();
  Base::load(archive);
}

template class FusedAdamOf<torch::optim::Adam>;
template class FusedAdamOf<torch::optim::AdamW>;

at::Tensor FusedSgd::step(LossClosure closure) {
  const at::Tensor loss = loss_of(closure);
  sgd_step(*this, {});
  return loss;
}

void FusedSgd::step_unless(const at::Tensor& found_inf) {
  sgd_step(*this, found_inf);
}

}  // namespace tune
