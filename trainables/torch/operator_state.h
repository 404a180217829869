// The registered parts of a TrainingOperator and the state of its training; for it and its runner.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "trainables/torch/operator_runner.h"
#include "trainables/torch/training_operator.h"

namespace tune {

// Counts samples among metrics that are means over them.
inline constexpr const char* kSamplesMetric = "num_samples";

struct OperatorState {
  ProcessGroup group;
  RunnerOptions options;
  TrainingParts parts = {};
  std::optional<MixedPrecision> precision = {};
  std::vector<std::unique_ptr<OperatorModel>> models = {};
  std::deque<LearningRateSchedule> schedules = {};  // of the first optimizers
  std::unique_ptr<DataLoader> train_batches = {};
  std::unique_ptr<DataLoader> validation_batches = {};
  std::int64_t epoch = 0;        // trained
  std::int64_t global_step = 0;  // batches trained, on this rank
  std::int64_t batches = 0;      // of the last epoch, on this rank
};

}  // namespace tune
