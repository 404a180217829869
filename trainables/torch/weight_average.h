// The exponential moving average of a model's weights (EMA): after each step of the optimizer it
// goes a small part of the way to the weights of the moment. Often judges better than they do.
//
//   WeightAverage average(*net, 0.999);
//   ... after each optimizer's step: average.update();
//   { const WeightAverage::InUse averaged(average); ... the model has the averages ... }
//
// The n-th update keeps min(decay, (1 + n) / (10 + n)) of the average, so that the weights of the
// start are soon forgotten. Buffers are not averaged. One thread uses it; the model must outlive
// it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainables/torch/checkpoint_copies.h"

namespace torch::nn {
class Module;
}

namespace tune {

class WeightAverage {
 public:
  // Begins with the model's weights. Refuses (kBadInput) a decay outside of (0, 1).
  WeightAverage(const torch::nn::Module& model, double decay);

  void update();

  // While it lives, the model has the averages for weights.
  class InUse {
   public:
    explicit InUse(const WeightAverage& average);
    ~InUse();
    InUse(const InUse&) = delete;

   private:
    const WeightAverage& average_;
    std::vector<at::Tensor> weights_;  // of the model, until it has them again
  };

  // average.safetensors, the model with averages for weights, which Python reads as it reads
  // model.safetensors, and average.json, the number of updates. Errors as those of checkpoint.h.
  void save(const std::filesystem::path& directory) const { writer(directory, nullptr)(); }
  // As checkpoint_writer() does it.
  CheckpointWriter writer(const std::filesystem::path& directory, CheckpointCopies* copies) const;
  void load(const std::filesystem::path& directory);

 private:
  const torch::nn::Module& model_;
  double decay_;
  std::int64_t updates_ = 0;
  std::vector<std::string> names_;
  std::vector<at::Tensor> weights_;   // the model's own
  std::vector<at::Tensor> averages_;  // in floats at least
};

}  // namespace tune
