// Training in half precision: autocast as a scope, and the levels O0 to O3 that users of apex know.
//
//   MixedPrecision precision({model.get()}, {&optimizer}, {.level = PrecisionLevel::kO1});
//   for (Batch& batch : loader) {
//     precision.zero_grad();
//     torch::Tensor loss;
//     {
//       const Autocast autocast = precision.autocast(batch.data.device().type());
//       loss = criterion(model->forward(precision.input(batch.data)), batch.target);
//     }
//     precision.backward(loss);
//     precision.step();
//   }
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "trainables/torch/checkpoint_copies.h"
#include "trainables/torch/grad_scaler.h"

namespace torch::nn {
class Module;
}

namespace tune {

// While it lives, the thread's operations on that device take the type that suits them, where
// LibTorch says so for the operation. For forward and loss; backward comes after it. Scopes may be
// nested.
class Autocast {
 public:
  // dtype: at::kHalf or at::kBFloat16, else kBadInput. Not enabled: full precision within another.
  Autocast(at::DeviceType device, at::ScalarType dtype, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType old_dtype_;
};

// The type in which a training computes where that is safe: floats, fp16 with a gradient scaler, or
// bf16, which needs none.
enum class Precision { kFloat32, kFloat16, kBFloat16 };
// "fp32", "fp16" or "bf16"; else kBadInput.
Precision precision_named(std::string_view name);

enum class PrecisionLevel {
  kO0,  // all in floats
  kO1,  // weights in floats, autocast
  kO2,  // weights in half precision but for batch norms, the optimizer's copies in floats, autocast
  kO3,  // all in half precision but for batch norms, unscaled: fast, and not stable
};

// "O0" to "O3"; else kBadInput.
PrecisionLevel precision_level(std::string_view name);

struct MixedPrecisionOptions {
  PrecisionLevel level = PrecisionLevel::kO1;
  at::ScalarType dtype = at::kHalf;  // or at::kBFloat16, which needs no scaling and gets none
  GradScalerOptions scaler = {};     // of O1 and O2
};

// Models, and the optimizers of their parameters, at one level. Both must outlive it.
class MixedPrecision {
 public:
  // At O2 and O3 the models' weights change their type, and at O2 the optimizers take copies of
  // them: after models and optimizers are on their device, before DDP wraps the models and before
  // the first step (else kBadInput).
  MixedPrecision(const std::vector<torch::nn::Module*>& models,
                 const std::vector<torch::optim::Optimizer*>& optimizers,
                 const MixedPrecisionOptions& options = {});

  // For forward and loss; does nothing at O0 and O3.
  Autocast autocast(at::DeviceType device) const;

  // The tensor as the models take it: at O2 and O3 a floating one in half precision.
  at::Tensor input(const at::Tensor& tensor) const;

  void backward(const at::Tensor& loss);  // of the scaled loss

  // Makes the gradients that the optimizer will use the true ones, for clipping. Optional.
  void unscale(torch::optim::Optimizer& optimizer);
  bool is_unscaled(torch::optim::Optimizer& optimizer) const {  // since the last update()
    return scaler_.is_unscaled(optimizer);
  }

  // All optimizers' steps and the scaler's update; true when none was skipped.
  bool step();
  // One optimizer's step, for several losses; update() once after the last.
  bool step(torch::optim::Optimizer& optimizer);
  void update();

  void zero_grad();  // the models' gradients are undefined afterwards

  const GradScaler& scaler() const { return scaler_; }

  // precision.pt: the scaler's state and, at O2, the weights in floats. Errors as those of
  // checkpoint.h. Load it after the models: they are set from these weights.
  void save(const std::filesystem::path& directory) const { writer(directory, nullptr)(); }
  CheckpointWriter writer(const std::filesystem::path& directory, CheckpointCopies* copies) const;
  void load(const std::filesystem::path& directory);

 private:
  struct Weight {
    at::Tensor half;    // the model's
    at::Tensor master;  // the optimizer's
  };
  void make_masters(torch::optim::Optimizer& optimizer);
  void copy_to_models(const std::vector<Weight>& weights);

  MixedPrecisionOptions options_;
  std::vector<torch::nn::Module*> models_;
  std::vector<torch::optim::Optimizer*> optimizers_;
  GradScaler scaler_;
  std::map<const torch::optim::Optimizer*, std::vector<Weight>> weights_;
};

}  // namespace tune
