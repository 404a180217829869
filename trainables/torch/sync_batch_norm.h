// SyncBatchNorm: batch normalisation over the batches of all ranks of a group, as if they were one.
// For parts of a batch that are too small to tell mean and variance.
//
// A model's typed members cannot be swapped afterwards, as Python's convert_sync_batchnorm does:
// models take a NormLayer, which makes the layer for a number of features.
//
//   Block(int64_t width, const tune::NormLayer& norm) : norm1(norm(width)) {
//     register_module("norm1", norm1.ptr());
//   }
//   x = norm1.forward(x);                                // a torch::nn::AnyModule
//
//   Block local(64, tune::batch_norm_2d());              // each rank for itself
//   Block synced(64, tune::sync_batch_norm(group));
//
// Parameters and buffers have the same names either way, so that checkpoints fit both.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>

#include "trainables/torch/process_group.h"

namespace tune {

using NormLayer = std::function<torch::nn::AnyModule(std::int64_t features)>;

// (n, features, ...) to the same shape and type, of any number of dimensions from 2 on. n may be 0
// on some ranks and differ between them. All ranks run the same forwards and backwards while the
// layer trains; otherwise, or alone, it is torch's batch normalisation.
class SyncBatchNormImpl : public torch::nn::BatchNormImplBase<2, SyncBatchNormImpl> {
 public:
  // The group is the layer's own, or group.for_layers(): of its collectives on CPUs none must come
  // between those of others.
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, ProcessGroup group);

  // Throws Error (kBadInput) when there is but one value a feature on all ranks together.
  torch::Tensor forward(const torch::Tensor& input);
  void pretty_print(std::ostream& stream) const override;

 protected:
  void _check_input_dim(const torch::Tensor& input) override;

 private:
  torch::Tensor normalise(const torch::Tensor& input);

  ProcessGroup group_;
};
TORCH_MODULE(SyncBatchNorm);

// Torch's own, for inputs of 2 or 3, 4, and 5 dimensions.
NormLayer batch_norm_1d();
NormLayer batch_norm_2d();
NormLayer batch_norm_3d();
// Layers that share one copy of the group, for_layers(), which is made here: all ranks call it.
NormLayer sync_batch_norm(ProcessGroup& group);

}  // namespace tune
