// DistributedDataParallel: trains one model on all ranks of a group, each with its own part of
// every batch. Gradients are averaged over the ranks while backward runs, so that the weights,
// which are equal at the start, stay equal. It does the same as Python's class of that name, and is
// made of the same parts.
//
//   tune::DistributedDataParallel model(net, group);      // Net is a TORCH_MODULE
//   torch::Tensor loss = torch::nll_loss(model.forward(x), y);
//   model.zero_grad();
//   model.backward(loss);
//   optimizer.step();                                     // of net's parameters, on every rank
//
// By Gloo and NCCL sums of three ranks or more may differ in the last digit between the first step
// and later ones, and so between a training that went on from a checkpoint and one that ran
// through: gradients are ordered anew after the first step.
//
// All ranks run the same forwards and backwards in the same order, each from one thread, and change
// weights in place only. A group of one rank costs nothing and speaks to nobody.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainables/torch/process_group.h"

namespace torch::nn {
class Module;
template <class Contained>
class ModuleHolder;
}  // namespace torch::nn

namespace tune {

// The type of gradients on their way between ranks.
enum class GradientCompression { kNone, kFloat16, kBFloat16 };

struct DdpOptions {
  // Gradients travel in buckets, each of which is closed when it has so many MiB. None: 25, but 1
  // for the first, so that it leaves soon. Each type of gradients has buckets of its own.
  std::optional<double> bucket_cap_mb = {};
  // A forward may leave parameters out, other ones on every rank. Costs a walk through the graph.
  bool find_unused_parameters = false;
  // Every step uses the same parameters in the same order: what is unused is found only once, and a
  // parameter may be used several times (checkpointed activations).
  bool static_graph = false;
  bool broadcast_buffers = true;  // rank 0's, before each forward that follows a reduced backward
  // Saves a copy of the gradients, but a plain Optimizer::zero_grad() throws. Empty: within a
  // TrainingStep, which knows of it.
  std::optional<bool> gradient_as_bucket_view = {};
  bool delay_allreduce = false;  // one bucket, when the last gradient is there
  GradientCompression compression = GradientCompression::kNone;
};

// Averages the gradients. For models whose forward returns a type in which
// DistributedDataParallel cannot find the tensors.
class GradientReducer {
 public:
  // Parameters that require gradients are taken now and have to stay what they are. Rank 0's
  // parameters and buffers are copied to the others. Throws Error (kBadInput) on all ranks when
  // models or options differ between ranks, naming the first parameter or option that does.
  GradientReducer(torch::nn::Module& model, ProcessGroup group, const DdpOptions& options = {});
  ~GradientReducer();
  GradientReducer(GradientReducer&&) noexcept;
  GradientReducer& operator=(GradientReducer&&) noexcept;

  // Around every forward. Its outputs that have gradients are replaced by copies through which
  // backward finds its way to the reducer.
  void before_forward();
  void after_forward(const std::vector<at::Tensor*>& outputs);

  // As loss.backward(), whose exception does not say which rank waits for what when a rank is gone
  // or went another way.
  void backward(const at::Tensor& loss);
  // Around a backward that is called in another way; `what` is named in the Error (kProcess) of a
  // group that failed. An exception of the computation comes out as it is.
  void guarded(const std::string& what, const std::function<void()>& work);
  // Takes the gradients away (Optimizer::zero_grad() cannot, with gradient_as_bucket_view).
  void zero_grad();

  // For gradients that are not gathered by these hooks, but in tensors of the caller's own, as
  // step_graph.h has them: the buffers of rank 0 before a forward, and afterwards the means over
  // the ranks, in place.
  const std::vector<at::Tensor>& parameters() const;  // those that have gradients
  void share_buffers();
  void average(const std::vector<at::Tensor>& gradients);

  // While one of these lives, backward gathers gradients on each rank alone; the forward belongs
  // into it too. The next backward without averages all that was gathered. Not with static_graph:
  // Error (kBadInput).
  class NoSync {
   public:
    explicit NoSync(GradientReducer& reducer);
    ~NoSync();
    NoSync(const NoSync&) = delete;

   private:
    GradientReducer& reducer_;
    bool before_ = true;
  };

  struct State;

 private:
  std::unique_ptr<State> state_;
};

namespace detail {

template <class>
inline constexpr bool kNever = false;

// Tensors within what a forward returns: a tensor, numbers, texts, and ranges, tuples, pairs and
// optionals of those.
template <class Output>
void collect_tensors(Output& output, std::vector<at::Tensor*>& into) {
  if constexpr (std::is_base_of_v<at::Tensor, Output>) {
    into.push_back(&output);
  } else if constexpr (std::is_arithmetic_v<Output> || std::is_enum_v<Output>) {
    return;
  } else if constexpr (requires { std::tuple_size<Output>::value; }) {
    std::apply([&](auto&... parts) { (collect_tensors(parts, into), ...); }, output);
  } else if constexpr (requires {
                         output.has_value();
                         *output;
                       }) {
    if (output.has_value()) collect_tensors(*output, into);
  } else if constexpr (requires { output.begin() != output.end(); }) {
    for (auto& part : output) collect_tensors(part, into);
  } else {
    static_assert(kNever<Output>,
                  "forward returns something of which the tensors cannot be told: "
                  "return a tuple, or call tune::GradientReducer yourself");
  }
}

template <class Output>
void collect_tensors(const Output&, std::vector<at::Tensor*>&) {}  // the keys of a map

}  // namespace detail

template <class Model>
class DistributedDataParallel {
 public:
  DistributedDataParallel(std::shared_ptr<Model> model, ProcessGroup group,
                          const DdpOptions& options = {})
      : model_(std::move(model)), reducer_(*model_, std::move(group), options) {}
  DistributedDataParallel(torch::nn::ModuleHolder<Model> model, ProcessGroup group,
                          const DdpOptions& options = {})
      : DistributedDataParallel(model.ptr(), std::move(group), options) {}

  template <class... Inputs>
  auto forward(Inputs&&... inputs) {
    reducer_.before_forward();
    auto output = model_->forward(std::forward<Inputs>(inputs)...);
    std::vector<at::Tensor*> tensors;
    detail::collect_tensors(output, tensors);
    reducer_.after_forward(tensors);
    return output;
  }
  template <class... Inputs>
  auto operator()(Inputs&&... inputs) {
    return forward(std::forward<Inputs>(inputs)...);
  }

  void backward(const at::Tensor& loss) { reducer_.backward(loss); }
  void zero_grad() { reducer_.zero_grad(); }
  [[nodiscard]] GradientReducer::NoSync no_sync() { return GradientReducer::NoSync(reducer_); }

  // The model itself: to judge with it, to save it. Its forward speaks to nobody.
  const std::shared_ptr<Model>& module() const { return model_; }
  Model* operator->() const { return model_.get(); }

 private:
  std::shared_ptr<Model> model_;
  GradientReducer reducer_;
};

}  // namespace tune
