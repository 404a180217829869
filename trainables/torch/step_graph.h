// Forward and backward of a training step as a CUDA graph: what they queue on the GPU is recorded
// once for batches of one shape, and then played again as one call, so that a small network does
// not wait for the CPU that starts its kernels. Used by TrainingStep (`cuda_graph`).
//
// Gradients keep their place in memory from the recording on: they lie in one tensor for each type,
// are set to zero and added to there, and averaged over the ranks when the graph is over. The rest
// of the step is not in the graph: schedules of the learning rate, any optimizer, the scaler's
// decision and the average of the weights are what they are without it. DDP's own hooks, which
// PyTorch wants 11 steps of warm-up for when they are recorded, are not in it either.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainables/torch/dataset.h"

namespace tune {

// The part of a device in it. One thread uses it.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // Runs `work`, which queues on a stream that can be recorded: after all that the caller has
  // queued, and before what it queues next.
  virtual void beside(const std::function<void()>& work) = 0;
  // Within beside: records what `work` queues, which is not computed, instead of an earlier record.
  virtual void record(const std::function<void()>& work) = 0;
  virtual void replay() = 0;  // within beside
};

// Which way a batch goes. Pure.
class GraphPlan {
 public:
  // Batches of one shape in a row before it is recorded: what is made at the first use (plans of
  // convolutions, workspaces, DDP's buckets) is there by then.
  static constexpr int kWarmUps = 3;
  // After so many batches it is said, once, when most of them were not played.
  static constexpr int kLookedAt = 100;

  enum class Way { kDirect, kRecord, kReplay };
  // `kind` stands for all that a record holds for: the shapes. Recorded is only where an
  // accumulation begins.
  Way next(const std::string& kind, bool begins);
  void forget();  // what is recorded
  std::optional<std::string> notice();

 private:
  std::string recorded_;  // empty: nothing
  std::string last_, last_other_;
  int in_a_row_ = 0;
  int batches_ = 0, replays_ = 0;
  bool was_said_ = false;
};

// A step's record, and the tensors that it reads and writes.
class StepGraph {
 public:
  explicit StepGraph(std::shared_ptr<DeviceGraph> device) : device_(std::move(device)) {}

  void beside(const std::function<void()>& work) { device_->beside(work); }
  // The plan's word for a batch of which `share` make one step.
  GraphPlan::Way next(const Batch& batch, std::int64_t share, bool begins);
  void forget();  // the record, and its hold of the gradients
  std::optional<std::string> notice() { return plan_.notice(); }

  // From now on the gradients that are there lie in gradients(), which are zeros.
  void hold_gradients(const std::vector<at::Tensor>& parameters);
  bool holds_gradients() const { return !gradients_.empty(); }
  const std::vector<at::Tensor>& gradients() const { return gradients_; }  // flat, one a type
  void zero();

  // `forward_and_backward` gives the loss of a batch. Throws Error (kBadInput) when it does what
  // cannot be recorded.
  void record(const Batch& batch,
              const std::function<at::Tensor(const Batch&)>& forward_and_backward);
  at::Tensor replay(const Batch& batch);  // the loss

 private:
  std::shared_ptr<DeviceGraph> device_;
  GraphPlan plan_;
  std::vector<at::Tensor> gradients_;
  Batch batch_;  // in the record
  at::Tensor loss_;
};

}  // namespace tune
