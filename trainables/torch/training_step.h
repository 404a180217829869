// TrainingStep: what a training does with one batch, as phases with names, and the policies of
// each: the precision of forward and backward, the limits of gradients, how many batches make one
// step of the optimizer, and the average of the weights.
//
//   tune::TrainingStep step(net, optimizer, group, {.criterion = torch::nn::CrossEntropyLoss(),
//                                                   .clip = {.norm = 1}, .accumulate = 4});
//   for (tune::Batch& batch : loader) metrics.add("train_loss", step.run(batch), batch.size());
//
// or, for another forward, phase by phase, each for every batch:
//
//   step.zero();
//   { const tune::Autocast scope = step.autocast();
//     loss = criterion(step.call([&] { return net->forward(a, b); }), target); }
//   step.backward(loss);
//   step.unscale();
//   step.clip();
//   step.step();
//
// No phase waits for a GPU, but for `step` with a gradient scaler (half precision), which asks
// whether the gradients are finite. Gradients are views of DDP's buckets unless the options say
// otherwise: take them away by zero(), as Optimizer::zero_grad() throws then.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainables/torch/dataset.h"
#include "trainables/torch/distributed_data_parallel.h"
#include "trainables/torch/gradient_clipping.h"
#include "trainables/torch/mixed_precision.h"
#include "trainables/torch/process_group.h"
#include "trainables/torch/step_graph.h"
#include "trainables/torch/weight_average.h"

namespace tune {

// A model of any class. A forward of one tensor that returns one is known from the class; for
// others see TrainingStep::call.
class AnyModel {
 public:
  template <class Model>
  AnyModel(const torch::nn::ModuleHolder<Model>& model)  // NOLINT: implicit on purpose
      : AnyModel(model.ptr()) {}
  template <class Model>
  AnyModel(std::shared_ptr<Model> model) : module(model) {  // NOLINT
    if constexpr (requires(Model & m, at::Tensor x) {
                    { m.forward(x) } -> std::convertible_to<at::Tensor>;
                  }) {
      forward = [model = model.get()](const at::Tensor& input) { return model->forward(input); };
    }
  }

  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> forward;  // empty: another one
};

// A loss of an output and its target: a module, such as torch::nn::CrossEntropyLoss(), or any
// function.
class Criterion {
 public:
  Criterion() = default;
  template <class Loss>
  Criterion(torch::nn::ModuleHolder<Loss> loss)  // NOLINT: implicit on purpose
      : module_(loss.ptr()), function_([loss](const at::Tensor& output, const at::Tensor& target) {
          return loss->forward(output, target);
        }) {}
  // Loss modules are classes derived from holders.
  template <class Loss>
  requires std::is_invocable_r_v<at::Tensor, Loss&, const at::Tensor&, const at::Tensor&> Criterion(
      Loss loss)  // NOLINT
      : function_([loss](const at::Tensor& output, const at::Tensor& target) mutable {
          return loss(output, target);
        }) {
    if constexpr (requires {
                    { loss.ptr() } -> std::convertible_to<std::shared_ptr<torch::nn::Module>>;
                  }) {
      module_ = loss.ptr();
    }
  }

  explicit operator bool() const { return static_cast<bool>(function_); }
  at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const {
    return function_(output, target);
  }
  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }  // or null

 private:
  std::shared_ptr<torch::nn::Module> module_;
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> function_;
};

struct TrainingStepOptions {
  Criterion criterion = {};  // of run() alone
  MixedPrecisionOptions precision = {.level = PrecisionLevel::kO0};
  GradientClip clip = {};
  // Batches whose gradients one step of the optimizer uses, as if they were one batch; ranks speak
  // once for all of them. At least 1.
  std::int64_t accumulate = 1;
  std::optional<double> ema_decay = {};  // see weight_average.h; empty: no average
  DdpOptions ddp = {};
  // When memory runs out in a forward or backward of run(), what LibTorch keeps of it is given back
  // and the batch tried again; then in halves, quarters and so on, whose gradients add up to the
  // batch's, from then on for each batch. The criterion is a mean over samples; statistics of batch
  // norms are each part's. For one rank, without `accumulate`: others have begun to reduce.
  bool split_when_out_of_memory = false;
  // On a GPU forward and backward of run() are recorded as a CUDA graph when a few batches in a row
  // had one shape, and played again for each later batch of that shape; others go the direct way.
  // Their decisions on the CPU stay what they were then: call record_again() when layers are frozen
  // or the forward is to go another way. They wait for nothing and speak to no other rank
  // (SyncBatchNorm). Not with static_graph, find_unused_parameters, compression or
  // split_when_out_of_memory. On a CPU it does nothing, and says so.
  bool cuda_graph = false;
  std::shared_ptr<DeviceGraph> graph = {};  // for tests: instead of CUDA's
};

class TrainingStep {
 public:
  // The model and the optimizer of its parameters, on their device; the optimizer may be null for a
  // model that another step trains. Throws Error (kBadInput) for options that cannot be, and as
  // GradientReducer. All ranks make it.
  TrainingStep(AnyModel model, std::shared_ptr<torch::optim::Optimizer> optimizer,
               ProcessGroup group = {}, const TrainingStepOptions& options = {});
  // With a precision that several steps share: one scaler for all. Made of the same model.
  TrainingStep(AnyModel model, std::shared_ptr<torch::optim::Optimizer> optimizer,
               ProcessGroup group, const TrainingStepOptions& options,
               std::shared_ptr<MixedPrecision> precision);
  TrainingStep(const TrainingStep&) = delete;

  // All phases with a batch on the model's device. Gives the batch's loss, a number on the device.
  at::Tensor run(const Batch& batch);
  // The parts of a batch that run() takes one after the other: 1, unless memory ran out.
  std::int64_t parts() const { return parts_; }
  // The record of `cuda_graph` does not hold any more.
  void record_again();
  // All phases but forward, with a loss that a forward of this step led to; returns as step().
  bool learn(const at::Tensor& loss);

  // ---- The phases. zero, unscale, clip and step do nothing for a batch within an accumulation.
  void zero();  // takes the gradients away
  // Throws Error (kBadInput) when the model's forward is of another kind: see call. Without
  // gradients (at::NoGradGuard) it speaks to no other rank.
  at::Tensor forward(const at::Tensor& input);
  // The same for any forward: call([&] { return net->forward(a, b); })
  template <class Forward>
  auto call(Forward&& forward) {
    before_forward();
    auto output = forward();
    std::vector<at::Tensor*> tensors;
    detail::collect_tensors(output, tensors);
    after_forward(tensors);
    return output;
  }
  void backward(const at::Tensor& loss);  // of the scaled loss, the batch's share of it
  void unscale();                         // makes the gradients the true ones
  void clip();
  // The optimizer's step, and the average's update: the end of a batch. False when a gradient was
  // not finite and the step left out, which only a scaler looks for.
  bool step();

  // Whether this batch's gradients are used at its end: always, unless `accumulate` is above 1.
  bool is_due() const { return gathered_ + 1 >= gathers(); }
  // So many batches come until an epoch ends, this one included: an accumulation ends with them.
  // Each batch of a shorter one has a larger share, so that its gradients are means as well.
  void set_batches_left(std::int64_t batches) { batches_left_ = batches; }
  // Of the last step, before it was limited, on the device; undefined without a limit of the norm.
  const at::Tensor& gradient_norm() const { return gradient_norm_; }

  // During its lifetime forward and loss run in the precision asked for.
  [[nodiscard]] Autocast autocast() const;
  at::Tensor input(const at::Tensor& tensor) const { return precision_->input(tensor); }
  MixedPrecision& precision() { return *precision_; }
  WeightAverage* average() { return average_ ? &*average_ : nullptr; }  // null: none is kept

  GradientReducer& reducer() { return reducer_; }
  torch::nn::Module& module() { return *model_.module; }

 private:
  void before_forward();
  void after_forward(const std::vector<at::Tensor*>& outputs);
  torch::optim::Optimizer& optimizer();
  std::int64_t gathers() const;
  at::Tensor gradients_of(const Batch& batch);
  at::Tensor loss_of(const Batch& batch);
  at::Tensor backward_in_parts(const Batch& batch);
  at::Tensor backward_by_graph(const Batch& batch);
  bool holds_gradients() const { return graph_ && graph_->holds_gradients(); }

  AnyModel model_;
  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  TrainingStepOptions options_;
  at::Device device_;
  std::shared_ptr<MixedPrecision> precision_;
  std::unique_ptr<StepGraph> graph_;  // null: none
  GradientReducer reducer_;
  std::optional<WeightAverage> average_;
  // While gradients are gathered on each rank alone.
  std::optional<GradientReducer::NoSync> alone_;
  std::int64_t gathered_ = 0;  // batches of the present accumulation that are over
  std::int64_t batches_left_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t share_ = 1;  // the batches of the present accumulation
  std::int64_t parts_ = 1;
  at::Tensor gradient_norm_;
};

}  // namespace tune
