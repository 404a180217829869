#include "trainables/torch/training_step.h"

#include <torch/torch.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "trainables/torch/cuda_part.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

// A forward of other inputs than one tensor cannot be called here.
constexpr const char* kOtherForward =
    "the model's forward does not take one tensor and return one: override train_batch and "
    "validate_batch, and write model().call([&] { return net->forward(a, b); }) there";

DdpOptions with_bucket_views(DdpOptions options) {
  options.gradient_as_bucket_view = options.gradient_as_bucket_view.value_or(true);
  return options;
}

std::shared_ptr<MixedPrecision> make_precision(const AnyModel& model,
                                               torch::optim::Optimizer* optimizer,
                                               const MixedPrecisionOptions& options) {
  std::vector<torch::optim::Optimizer*> optimizers;
  if (optimizer != nullptr) optimizers.push_back(optimizer);
  return std::make_shared<MixedPrecision>(std::vector{model.module.get()}, optimizers, options);
}

// Slices along the first dimension, as alike as can be.
std::vector<Batch> parts_of(const Batch& batch, std::int64_t count) {
  if (count == 1) return {batch};
  std::vector<Batch> parts;
  for (std::int64_t i = 0; i < std::min(count, batch.size()); ++i) {
    const std::int64_t used = std::min(count, batch.size());
    const std::int64_t begin = batch.size() * i / used, end = batch.size() * (i + 1) / used;
    const auto slice = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.slice(0, begin, end) : tensor;
    };
    Batch part = {slice(batch.data), slice(batch.target)};
    for (const at::Tensor& tensor : batch.more) part.more.push_back(slice(tensor));
    parts.push_back(std::move(part));
  }
  return parts;
}

void check_options(const TrainingStepOptions& options, int ranks) {
  check(options.clip);
  if (options.accumulate < 1) {
    bad_input("accumulate is " + std::to_string(options.accumulate) + ", at least 1 is wanted");
  }
  if (options.split_when_out_of_memory && (options.accumulate > 1 || ranks > 1)) {
    bad_input("split_when_out_of_memory is for one rank and accumulate = 1, here are " +
              std::to_string(ranks) + " and " + std::to_string(options.accumulate) +
              ": make batch_size smaller instead");
  }
  if (options.accumulate > 1 && options.ddp.static_graph) {
    bad_input("accumulate does not go with static_graph: leave one of them out");
  }
  if (!options.cuda_graph) return;
  const auto refuse_beside = [](bool is_set, const char* name) {
    if (!is_set) return;
    bad_input(std::string("cuda_graph does not go with ") + name + ": leave one of them out");
  };
  refuse_beside(options.split_when_out_of_memory, "split_when_out_of_memory");
  refuse_beside(options.ddp.static_graph, "static_graph");
  refuse_beside(options.ddp.find_unused_parameters, "find_unused_parameters");
  refuse_beside(options.ddp.compression != GradientCompression::kNone, "compression");
}

std::unique_ptr<StepGraph> make_graph(const TrainingStepOptions& options,
                                      const ProcessGroup& group) {
  if (!options.cuda_graph) return nullptr;
  if (options.graph) return std::make_unique<StepGraph>(options.graph);
  if (group.device().is_cuda()) return std::make_unique<StepGraph>(cuda_part().make_graph());
  if (group.rank() == 0) std::cerr << "warning: cuda_graph does nothing on a CPU\n";
  return nullptr;
}

// Where a graph is recorded: gradients arrive on the stream on which the reducer was made, and the
// recording takes no others.
GradientReducer make_reducer(StepGraph* graph, torch::nn::Module& model, const ProcessGroup& group,
                             const DdpOptions& options) {
  if (graph == nullptr) return GradientReducer(model, group, with_bucket_views(options));
  std::optional<GradientReducer> reducer;
  graph->beside([&] { reducer.emplace(model, group, with_bucket_views(options)); });
  return std::move(*reducer);
}

}  // namespace

TrainingStep::TrainingStep(AnyModel model, std::shared_ptr<torch::optim::Optimizer> optimizer,
                           ProcessGroup group, const TrainingStepOptions& options)
    : TrainingStep(model, optimizer, std::move(group), options,
                   make_precision(model, optimizer.get(), options.precision)) {}

TrainingStep::TrainingStep(AnyModel model, std::shared_ptr<torch::optim::Optimizer> optimizer,
                           ProcessGroup group, const TrainingStepOptions& options,
                           std::shared_ptr<MixedPrecision> precision)
    : model_(std::move(model)),
      optimizer_(std::move(optimizer)),
      options_(options),
      device_(group.device()),
      precision_(std::move(precision)),
      graph_((check_options(options, group.size()), make_graph(options, group))),
      reducer_(make_reducer(graph_.get(), *model_.module, group, options.ddp)) {
  if (options.ema_decay) average_.emplace(*model_.module, *options.ema_decay);
}

at::Tensor TrainingStep::run(const Batch& batch) {
  if (!options_.criterion) bad_input("a training step without a criterion cannot run: give one");
  at::Tensor loss;
  const auto all_phases = [&] {
    loss = gradients_of(batch);
    unscale();
    clip();
    step();
  };
  if (!graph_) {
    all_phases();
    return loss.detach();
  }
  graph_->beside(all_phases);
  if (const auto notice = graph_->notice()) std::cerr << "warning: " << *notice << '\n';
  return loss.detach();
}

at::Tensor TrainingStep::gradients_of(const Batch& batch) {
  if (options_.split_when_out_of_memory) return backward_in_parts(batch);
  if (graph_) return backward_by_graph(batch);
  zero();
  const at::Tensor loss = loss_of(batch);
  backward(loss);
  return loss;
}

at::Tensor TrainingStep::loss_of(const Batch& batch) {
  const Autocast scope = autocast();
  return options_.criterion(forward(input(batch.data)), batch.target);
}

at::Tensor TrainingStep::backward_in_parts(const Batch& batch) {
  for (bool is_second_try = false;;) {
    try {
      zero();
      at::Tensor sum;
      for (const Batch& part : parts_of(batch, parts_)) {
        const double share = static_cast<double>(part.size()) / static_cast<double>(batch.size());
        const at::Tensor loss = parts_ == 1 ? loss_of(part) : loss_of(part) * share;
        backward(loss);
        sum = sum.defined() ? sum + loss.detach() : loss.detach();
      }
      return sum;
    } catch (const c10::OutOfMemoryError& error) {
      if (is_second_try && parts_ >= batch.size()) throw;
      const std::string cause = cause_of(error);
      if (is_second_try) parts_ = std::min(2 * parts_, batch.size());
      std::cerr << "warning: out of memory (" << cause << "): the batch is tried again in "
                << parts_ << (parts_ == 1 ? " part\n" : " parts\n");
    }
    is_second_try = true;
    reducer_.zero_grad();
    if (const CudaPart* cuda = loaded_cuda_part()) cuda->give_back_memory();
  }
}

at::Tensor TrainingStep::backward_by_graph(const Batch& batch) {
  const GraphPlan::Way way = graph_->next(batch, gathers(), gathered_ == 0);
  if (way == GraphPlan::Way::kDirect) {
    zero();
    const at::Tensor loss = loss_of(batch);
    backward(loss);
    return loss;
  }
  reducer_.share_buffers();  // not within the record
  if (way == GraphPlan::Way::kRecord) {
    if (!holds_gradients()) graph_->hold_gradients(reducer_.parameters());
    graph_->record(batch, [this, share = gathers()](const Batch& recorded) {
      const at::Tensor loss = loss_of(recorded);
      precision_->backward(share > 1 ? loss / share : loss);
      return loss;
    });
  }
  zero();
  const at::Tensor loss = graph_->replay(batch);
  if (is_due()) reducer_.average(graph_->gradients());
  return loss;
}

void TrainingStep::record_again() {
  if (graph_) graph_->forget();
}

bool TrainingStep::learn(const at::Tensor& loss) {
  zero();
  backward(loss);
  unscale();
  clip();
  return step();
}

// ---- Phases -------------------------------------------------------------------------------------

void TrainingStep::zero() {
  if (gathered_ > 0) return;
  holds_gradients() ? graph_->zero() : reducer_.zero_grad();
}

at::Tensor TrainingStep::forward(const at::Tensor& input) {
  if (!model_.forward) bad_input(kOtherForward);
  return call([&] { return model_.forward(input); });
}

// Validation speaks to no other rank: ranks may validate different numbers of batches.
void TrainingStep::before_forward() {
  if (!at::GradMode::is_enabled()) return;
  if (holds_gradients()) return reducer_.share_buffers();
  if (is_due()) {
    alone_.reset();
  } else if (!alone_) {
    alone_.emplace(reducer_);
  }
  reducer_.before_forward();
}

void TrainingStep::after_forward(const std::vector<at::Tensor*>& outputs) {
  if (at::GradMode::is_enabled() && !holds_gradients()) reducer_.after_forward(outputs);
}

void TrainingStep::backward(const at::Tensor& loss) {
  const at::Tensor share = gathers() > 1 ? loss / gathers() : loss;
  reducer_.guarded("backward", [&] { precision_->backward(share); });
  if (holds_gradients() && is_due()) reducer_.average(graph_->gradients());
}

void TrainingStep::unscale() {
  if (is_due() && !precision_->is_unscaled(optimizer())) precision_->unscale(optimizer());
}

void TrainingStep::clip() {
  if (!is_due() || (!options_.clip.norm && !options_.clip.value)) return;
  unscale();
  gradient_norm_ = clip_gradients(optimizer(), options_.clip);
}

bool TrainingStep::step() {
  if (!is_due()) {
    share_ = gathers();
    ++gathered_;
    return true;
  }
  const bool stepped = precision_->step(optimizer());
  precision_->update();
  if (stepped && average_) average_->update();
  gathered_ = 0;
  return stepped;
}

Autocast TrainingStep::autocast() const {
  return precision_->autocast(device_.type());
}

// ---- Helpers ------------------------------------------------------------------------------------

torch::optim::Optimizer& TrainingStep::optimizer() {
  if (!optimizer_) bad_input("a training step of a model without an optimizer: give it one");
  return *optimizer_;
}

// Decided by an accumulation's first batch.
std::int64_t TrainingStep::gathers() const {
  if (gathered_ > 0) return share_;
  return std::max<std::int64_t>(1, std::min(options_.accumulate, batches_left_));
}

}  // namespace tune
