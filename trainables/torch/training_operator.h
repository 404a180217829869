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

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/value.h"
#include "trainables/torch/batch_trace.h"
#include "trainables/torch/data_loader.h"
#include "trainables/torch/image_transforms.h"
#include "trainables/torch/learning_rate.h"
#include "trainables/torch/metrics.h"
#include "trainables/torch/process_group.h"
#include "trainables/torch/sync_batch_norm.h"
#include "trainables/torch/training_step.h"

namespace tune {

class TrainingRun;

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
  // Instead of use_fp16, on any device.
  std::optional<Precision> precision = {};
  GradientClip clip = {};
  std::int64_t accumulate = 1;           // batches of each step of the optimizer
  std::optional<double> ema_decay = {};  // the average of the weights, which validation judges
  // Weights and batches of images lie channels last, which convolutions in half precision on GPUs,
  // and many on CPUs, compute faster. Their outputs do as well: flatten() them, view() throws.
  bool channels_last = false;
  // Of one rank: see TrainingStepOptions. For the default train_batch.
  bool split_when_out_of_memory = false;
  // Forward and backward are played again as one call of the GPU: see TrainingStepOptions. For the
  // default train_batch.
  bool cuda_graph = false;
  // Writes trace_rank_<r>.json into the trial's folder, of a TorchTrainer into the working one,
  // from batches of the default train_epoch: `.profile = {.batches = {10, 20}}`.
  ProfileOptions profile = {};
  // A trial's checkpoints are copied, and written while it trains on: Context::write_beside. The
  // copy takes as much memory as models and optimizers. A TorchTrainer's save waits all the same.
  bool asynchronous_checkpoints = false;
};

struct DataParts {
  std::shared_ptr<Dataset> train = {};
  std::shared_ptr<Dataset> validation = {};
  std::int64_t batch_size = 32;            // of each rank
  std::int64_t validation_batch_size = 0;  // 0: the same
  bool shuffle = true;                     // of the training set, anew for each epoch
  bool drop_last = false;                  // leave out a batch that is not full
  int workers = 0;                         // threads that load ahead; 0: none
  // Batches after which a trial reports, within an epoch, is judged and may be saved; 0: an epoch's
  // end. Each report validates.
  std::int64_t report_every = 0;
  std::function<Batch(std::vector<Batch>)> collate = {};  // see DataLoaderOptions
  // Of each batch's data when it is on the device: transforms::normalize_batch, say.
  BatchTransform prepare = {};
};

struct BatchInfo {
  std::int64_t epoch = 0;        // 0, 1, ...
  std::int64_t batch = 0;        // within the epoch, on this rank
  std::int64_t global_step = 0;  // batches trained before it, in all epochs
};

class TrainingOperator {
 public:
  TrainingOperator();
  virtual ~TrainingOperator();
  TrainingOperator(const TrainingOperator&) = delete;

  // Makes and registers everything. Called once, on every rank, with torch's generators seeded
  // equally.
  virtual void setup(const Config& config) = 0;

  // One pass over the rank's part of the training set, or over its next `report_every` batches,
  // after which the loader's loop ends. By default train_batch for each batch;
  // returns the means of what that returned, weighted by its num_samples, over all ranks. A custom
  // one takes each batch on_device and, unless they step by epoch, calls step_schedulers.
  virtual Result train_epoch(DataLoader& batches);
  // One step. By default that of the only model, see training_step.h: measures train_loss, and
  // gradient_norm where the norm is limited, and returns num_samples. Outside of the default
  // train_epoch it returns them all, for which it waits. The batch is on the device.
  virtual Result train_batch(const Batch& batch, const BatchInfo& info);
  // The same for the validation set, without gradients and in evaluation mode. Ranks may have
  // different numbers of batches. By default measures val_loss, and val_accuracy where the output
  // is (n, classes) and the target (n) whole numbers.
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
  TrainingStep& model(std::size_t index = 0);
  // A mean over so many samples of the batch that train_batch or validate_batch was given, which
  // stays on its device until all batches are done: loss.item() would wait for the GPU in each.
  void measure(const std::string& name, const at::Tensor& mean, std::int64_t samples);
  torch::optim::Optimizer& optimizer(std::size_t index = 0);
  // A loader's batches are on the CPU, and not prepared.
  Batch on_device(const Batch& batch) const;
  void step_schedulers();  // for SchedulerStep::kManual
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const;  // by the criterion
  // All phases of that model's step after its forward. Model and optimizer have the same index.
  // False when a gradient was not finite and the step left out.
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
  friend class TrainingRun;
  TrainingRun& run() const;  // Error (kBadInput) outside of one
  void put(Result& result, const std::string& name, const at::Tensor& mean, std::int64_t samples);

  TrainingRun* run_ = nullptr;
};

}  // namespace tune
