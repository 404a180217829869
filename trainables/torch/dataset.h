// Data that a DataLoader makes batches of: samples by number. Not the order they come in: that is a
// Sampler's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "trainables/torch/sampler.h"

namespace tune {

// One sample, or several with a leading dimension; target may be undefined for data without one.
struct Batch {
  at::Tensor data;
  at::Tensor target;
  // Other tensors that belong to it, in the data set's own order: lengths, masks, a second input.
  std::vector<at::Tensor> more = {};

  // Samples of a batch.
  std::int64_t size() const { return data.size(0); }
};

// get and get_batch are called by several threads at once when a loader has workers; set_epoch by
// the loader's own thread, before any of the epoch's samples is asked for.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;

  // The sample with that index, 0 <= index < size(), its tensors of equal shape for all indices.
  virtual Batch get(std::int64_t index) const = 0;

  // Those samples, (n) int64 on the CPU with n >= 1. By default get() of each, every tensor
  // stacked.
  virtual Batch get_batch(const at::Tensor& indices) const;

  // The order in which a training goes through it, each rank through its share. By default a
  // DistributedSampler's; a stream has one of its own.
  virtual std::shared_ptr<Sampler> sampler(const DistributedSamplerOptions& options) const;

  // For data that is different in each epoch, as with random transforms.
  virtual void set_epoch(std::int64_t epoch);
};

// Samples of equal shapes as one batch. Errors name the samples by their indices, (n) int64.
Batch stacked(const std::vector<Batch>& samples, const at::Tensor& indices);

// Samples that lie in memory, (size, ...) each, on any device; a batch is one index_select of them,
// no copy of each sample is made.
class TensorDataset : public Dataset {
 public:
  // Refuses (kBadInput) data and target of different length, and data without samples.
  explicit TensorDataset(at::Tensor data, at::Tensor target = {});
  std::int64_t size() const override;
  Batch get(std::int64_t index) const override;
  Batch get_batch(const at::Tensor& indices) const override;

 private:
  at::Tensor data_;
  at::Tensor target_;
};

}  // namespace tune
