// Runs a TrainingOperator on one rank: what a trial of a sweep and a worker of a TorchTrainer have
// in common. All ranks call the same functions in the same order.
//
// A checkpoint's folder holds, written by rank 0:
//   model.safetensors, optimizer.pt   in the folder itself; of several, number i in a folder `i`
//   training.json                     epoch, steps, the states of schedules and gradient scalers
//   operator/                         what the operator's own save wrote
// and by every rank `rank_<r>/random.pt`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/value.h"
#include "trainables/torch/training_operator.h"

namespace tune {

inline constexpr const char* kProgressFile = "training.json";  // every checkpoint has it

struct RunnerOptions {
  bool use_fp16 = false;
  std::uint64_t seed = 0;  // the same on all ranks
};

class OperatorRunner {
 public:
  // Sets the operator up. Throws what its setup throws, and Error (kBadInput) when what it
  // registered does not fit together.
  OperatorRunner(std::unique_ptr<TrainingOperator> training, ProcessGroup group,
                 const Config& config, const RunnerOptions& options);
  ~OperatorRunner();

  // One epoch: train_loss, num_samples (of all ranks), batch_count (of this rank), epoch (1, 2,
  // ...) and what else the operator reports. Equal on all ranks.
  Result train();
  // val_loss, val_accuracy, num_samples and what else the operator reports.
  Result validate();
  bool has_validation() const;

  // The folder is there; all ranks call it with the same one.
  void save(const std::filesystem::path& directory);
  void load(const std::filesystem::path& directory);

 private:
  OperatorState& state() const;

  std::unique_ptr<TrainingOperator> training_;
};

}  // namespace tune
