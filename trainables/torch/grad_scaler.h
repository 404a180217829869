// The scaling of a loss, so that gradients in half precision neither vanish nor overflow, as
// torch.amp.GradScaler of Python does it.
//
//   scaler.scale(loss).backward();
//   scaler.step(optimizer);   // not done when a gradient is infinite or no number
//   scaler.update();          // once, after all optimizers: a smaller or, after a while, larger
//   scale
//
// With several ranks the gradients must be averages by then (DDP's are): all ranks then decide the
// same without asking each other. One thread uses a scaler.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "core/value.h"

namespace torch::optim {
class Optimizer;
}

namespace tune {

struct GradScalerOptions {
  bool enabled = true;  // false: all passes through unchanged
  double scale = 65536;
  double growth = 2;                    // the factor after growth_interval steps without overflow
  double backoff = 0.5;                 // the factor after an overflow
  std::int64_t growth_interval = 2000;  // steps
};

class GradScaler {
 public:
  // Refuses (kBadInput) scale <= 0, growth <= 1, backoff outside (0, 1) and an interval below 1.
  explicit GradScaler(const GradScalerOptions& options = {});

  // The loss times the scale, as a float at least: what backward() is called on.
  at::Tensor scale(const at::Tensor& loss);

  // Divides the gradients by the scale in place, before they are clipped, say. At most once between
  // two updates; step() does it otherwise.
  void unscale(torch::optim::Optimizer& optimizer);
  // Whether that was done since the last update; also of a disabled scaler.
  bool is_unscaled(torch::optim::Optimizer& optimizer) const;

  // The optimizer's step, if its gradients are finite. True when it was done; also for a
  // FusedOptimizer, which finds that out on the device: nothing waits for it.
  bool step(torch::optim::Optimizer& optimizer);

  // Sets the next scale. TUNE_CHECK: unscale or step came before, unless the scaler is disabled.
  void update();

  double scale() const;

  // {scale, growth_tracker}, as state_dict of Python names them.
  Value state() const;
  void load_state(const Value& state);

 private:
  struct Unscaled {
    std::vector<at::Tensor> found_inf;  // by device
    bool stepped = false;
  };
  void place(const at::Device& device);

  GradScalerOptions options_;
  at::Tensor scale_;    // (1) float
  at::Tensor tracker_;  // (1) int: steps without overflow since the scale was changed
  std::map<torch::optim::Optimizer*, Unscaled> unscaled_;
};

}  // namespace tune
