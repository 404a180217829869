// SGD, Adam and AdamW whose step is one operation over all parameters of a group, as Python's with
// fused=True: LibTorch's own of C++ run a dozen operations for each parameter. Options, state and
// files are those of torch::optim's classes of which they are derived: a checkpoint of one is
// loaded by the other.
//
//   auto optimizer = std::make_shared<tune::FusedAdam>(net->parameters(),
//                                                      torch::optim::AdamOptions(1e-3));
//
// With a gradient scaler the step itself looks, on the device, whether the gradients are finite, so
// that nothing waits for a GPU. Sparse gradients are refused (kBadInput).
#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <map>
#include <optional>

namespace tune {

// An optimizer that leaves its step out by what a tensor says.
class FusedOptimizer {
 public:
  virtual ~FusedOptimizer() = default;
  // found_inf: a float on the parameters' device, 0 or 1. With 1 nothing changes.
  virtual void step_unless(const at::Tensor& found_inf) = 0;
};

// The number of steps that each parameter has made, on its device: where a step may be left out,
// only the device knows.
using StepsOnDevice = std::map<const void*, at::Tensor>;

// Of torch::optim::Adam or AdamW.
template <class Base>
class FusedAdamOf : public Base, public FusedOptimizer {
 public:
  using Base::Base;
  at::Tensor step(torch::optim::Optimizer::LossClosure closure = nullptr) override;
  void step_unless(const at::Tensor& found_inf) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  StepsOnDevice steps_;
};
extern template class FusedAdamOf<torch::optim::Adam>;
extern template class FusedAdamOf<torch::optim::AdamW>;

using FusedAdam = FusedAdamOf<torch::optim::Adam>;
using FusedAdamW = FusedAdamOf<torch::optim::AdamW>;

class FusedSgd : public torch::optim::SGD, public FusedOptimizer {
 public:
  using torch::optim::SGD::SGD;
  at::Tensor step(LossClosure closure = nullptr) override;
  void step_unless(const at::Tensor& found_inf) override;
};

}  // namespace tune
