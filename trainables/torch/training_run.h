// Runs a TrainingOperator on one rank: what a trial of a sweep and a worker of a TorchTrainer have
// in common. Holds what the operator registered and the state of its training. All ranks call the
// same functions in the same order.
//
// A checkpoint's folder holds, written by rank 0:
//   model.safetensors, optimizer.pt   in the folder itself; of several, number i in a folder `i`
//   average.safetensors, .json        beside the model, where an average of its weights is kept
//   precision.pt                      see mixed_precision.h
//   training.json                     epoch, steps, the place within the epoch, schedules' states
//   operator/                         what the operator's own save wrote
// and by every rank `rank_<r>/random.pt`.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/value.h"
#include "trainables/torch/checkpoint_copies.h"
#include "trainables/torch/training_operator.h"

namespace tune {

inline constexpr const char* kProgressFile = "training.json";  // every checkpoint has it

struct TrainingRunOptions {
  bool use_fp16 = false;
  std::uint64_t seed = 0;  // the same on all ranks
  std::filesystem::path directory = {};  // where traces go; empty: the working one
};

class TrainingRun {
 public:
  // Sets the operator up. Throws what its setup throws, and Error (kBadInput) when what it
  // registered does not fit together.
  TrainingRun(std::unique_ptr<TrainingOperator> training, ProcessGroup group, const Config& config,
              const TrainingRunOptions& options);
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;

  // An epoch, or its next `report_every` batches: train_loss, num_samples (of all ranks),
  // batch_count (of this rank), epoch (1, 2, ...: the one trained) and what else the operator
  // reports. Equal on all ranks.
  Result train();
  // val_loss, val_accuracy, num_samples and what else the operator reports. Models have the
  // averages of their weights, where these are kept.
  Result validate();
  bool has_validation() const { return validation_batches_ != nullptr; }

  // The folder is there; all ranks call it with the same one. A group of another size than the one
  // that saved goes on at the same place of the epoch, or up to a sample a rank before it.
  void save(const std::filesystem::path& directory);
  // The same, but with `asynchronous_checkpoints` all is copied, and what writes it goes to
  // `beside`.
  void save(const std::filesystem::path& directory,
            const std::function<void(CheckpointWriter)>& beside);
  void load(const std::filesystem::path& directory);

 private:
  friend class TrainingOperator;
  CheckpointWriter writer(const std::filesystem::path& directory, CheckpointCopies* copies);
  void share_buffers();
  void set_training(bool training);
  void end_epoch();
  Value progress() const;
  void load_progress(const Value& progress, const std::filesystem::path& directory);

  std::unique_ptr<TrainingOperator> training_;
  ProcessGroup group_;
  TrainingRunOptions options_;
  TrainingParts parts_ = {};
  std::shared_ptr<MixedPrecision> precision_ = {};
  std::vector<std::unique_ptr<TrainingStep>> steps_ = {};  // of each model
  std::deque<LearningRateSchedule> schedules_ = {};        // of the first optimizers
  std::unique_ptr<DataLoader> train_batches_ = {};
  std::unique_ptr<DataLoader> validation_batches_ = {};
  BatchTransform prepare_ = {};
  std::int64_t report_every_ = 0;
  std::int64_t epoch_ = 0;        // trained
  std::int64_t global_step_ = 0;  // batches trained, on this rank
  std::int64_t batches_ = 0;      // of the last train(), on this rank
  Metrics* metrics_ = nullptr;    // of the loop under way
  CheckpointCopies copies_ = {};
  std::optional<BatchTrace> trace_ = {};
};

}  // namespace tune
