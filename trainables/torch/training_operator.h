// TrainingOperator: what is particular to one training, without the rest. `setup` makes models,
// optimizers, schedules and data and registers them; moving them to the device, averaging gradients
// over the ranks, splitting the data, mixed precision, metrics and checkpoints are done here. The
// same operator trains alone, in a TorchTrainer's workers, and as the trials of a sweep.
//
//   class Images : public tune::TrainingOperator {
//     void setup(const tune::Config& config) override {
//       ConvNet net;
//       auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(),
//                                                            config.get<double>("lr"));
//       register_training({.models = {net}, .optimizers = {optimizer},
//                          .criterion = torch::nn::CrossEntropyLoss()});
//       register_data({.train = std::make_shared<tune::TensorDataset>(images, labels),
//                      .validation = ..., .batch_size = 64});
//     }
//   };
//
// One model that takes one tensor needs nothing more. For anything else override train_batch and
// validate_batch, or train_epoch. An exception ends the training with its message.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/value.h"
#include "trainables/torch/data_loader.h"
#include "trainables/torch/distributed_data_parallel.h"
#include "trainables/torch/learning_rate.h"
#include "trainables/torch/metrics.h"
#include "trainables/torch/mixed_precision.h"
#include "trainables/torch/process_group.h"
#include "trainables/torch/sync_batch_norm.h"

namespace tune {

struct OperatorState;

// A model of any class, as an operator holds it. A forward of one tensor that returns one is known
// from the class; for others see OperatorModel::call.
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

// When the learning rate moves on: after each batch, after each epoch, or when the operator says
// so.
enum class SchedulerStep { kEpoch, kBatch, kManual };

struct TrainingParts {
  std::vector<AnyModel> models = {};  // at least one
  std::vector<std::shared_ptr<torch::optim::Optimizer>> optimizers = {};
  // Of the optimizer with the same index; fewer are fine.
  std::vector<LearningRate> schedulers = {};
  Criterion criterion = {};
  DdpOptions ddp_args = {};
  // Mixed precision: off unless here or in the trainer's options; with fp16 on GPUs, bf16 on CPUs.
  // opt_level is one of O0 to O3, see mixed_precision.h.
  bool use_fp16 = false;
  std::string opt_level = "O1";
  SchedulerStep scheduler_step = SchedulerStep::kEpoch;
  // Of all learning rates with the number of ranks, before schedules.
  LearningRateScaling lr_scaling = LearningRateScaling::none();
};

struct DataParts {
  std::shared_ptr<Dataset> train = {};
  std::shared_ptr<Dataset> validation = {};
  std::int64_t batch_size = 32;            // of each rank
  std::int64_t validation_batch_size = 0;  // 0: the same
  bool shuffle = true;                     // of the training set, anew for each epoch
  bool drop_last = false;                  // leave out a batch that is not full
  int workers = 0;                         // threads that load ahead; 0: none
};

struct BatchInfo {
  std::int64_t epoch = 0;        // 0, 1, ...
  std::int64_t batch = 0;        // within the epoch, on this rank
  std::int64_t global_step = 0;  // batches trained before it, in all epochs
};

// One of the registered models while it trains: with gradients averaged over the ranks.
class OperatorModel {
 public:
  OperatorModel(AnyModel model, const ProcessGroup& group, const DdpOptions& options);

  // Throws Error (kBadInput) when the model's forward is of another kind: see call.
  at::Tensor forward(const at::Tensor& input);
  // The same for a model of which the operator kept the holder: call([&] { return net->forward(a,
  // b); })
  template <class Forward>
  auto call(Forward&& forward) {
    before_forward();
    auto output = forward();
    std::vector<at::Tensor*> tensors;
    detail::collect_tensors(output, tensors);
    after_forward(tensors);
    return output;
  }
  GradientReducer& reducer() { return reducer_; }
  torch::nn::Module& module() { return *model_.module; }

 private:
  void before_forward();
  void after_forward(const std::vector<at::Tensor*>& outputs);

  AnyModel model_;
  GradientReducer reducer_;
};

class TrainingOperator {
 public:
  TrainingOperator();
  virtual ~TrainingOperator();
  TrainingOperator(const TrainingOperator&) = delete;

  // Makes and registers everything. Called once, on every rank, with torch's generators seeded
  // equally.
  virtual void setup(const Config& config) = 0;

  // One pass over the rank's part of the training set. By default train_batch for each batch;
  // returns the means of what that returned, weighted by its num_samples, over all ranks. A custom
  // one takes each batch on_device and, unless they step by epoch, calls step_schedulers.
  virtual Result train_epoch(DataLoader& batches);
  // One step. By default forward, criterion, backward and the optimizer's step of the only model;
  // returns train_loss and num_samples. The batch is on the device.
  virtual Result train_batch(const Batch& batch, const BatchInfo& info);
  // The same for the validation set, without gradients and in evaluation mode. Ranks may have
  // different numbers of batches. By default val_loss, and val_accuracy where the output is (n,
  // classes) and the target (n) whole numbers.
  virtual Result validate(DataLoader& batches);
  virtual Result validate_batch(const Batch& batch, const BatchInfo& info);

  // The operator's state beside its registered parts. Called on rank 0 (save) and on all (load),
  // with a folder of its own.
  virtual void save(const std::filesystem::path& directory);
  virtual void load(const std::filesystem::path& directory);

 protected:
  // Both at most once, in setup; models are moved to the device there.
  void register_training(TrainingParts parts);
  void register_data(const DataParts& parts);

  // For own train_batch and train_epoch.
  OperatorModel& model(std::size_t index = 0);
  torch::optim::Optimizer& optimizer(std::size_t index = 0);
  Batch on_device(const Batch& batch) const;  // a loader's batches are on the CPU
  void step_schedulers();                     // for SchedulerStep::kManual
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const;  // by the criterion
  // Takes the gradients of that model away, then backward, then the optimizer's step, in the
  // precision asked for. Model and optimizer have the same index. False when a gradient was not
  // finite and the step left out.
  bool step(const at::Tensor& loss, std::size_t index = 0);
  // During its lifetime a forward runs in the precision asked for.
  [[nodiscard]] Autocast autocast() const;

  ProcessGroup& group();
  int rank() const;
  int world_size() const;
  at::Device device() const;
  std::int64_t epoch() const;  // epochs trained before this one
  // For models that take one: batch normalisation over all ranks, or each rank's own.
  NormLayer norm_layer_2d(bool synced = true);

 private:
  friend class OperatorRunner;
  OperatorState& state() const;  // Error (kBadInput) outside of a runner
  std::shared_ptr<OperatorState> state_;
};

}  // namespace tune
