// The tensors of an optimizer's state, and copies of them in their place for a moment: LibTorch
// writes an optimizer only as a whole, and from its own tensors.
#pragma once

#include <torch/optim/optimizer.h>

#include <utility>
#include <vector>

#include "trainables/torch/checkpoint_copies.h"

namespace tune {

// Whether all tensors that the optimizer's save writes are known: of LibTorch's SGD, Adam, AdamW,
// RMSprop and Adagrad, and the fused ones. A class derived of one of these may write others.
bool has_known_state(const torch::optim::Optimizer& optimizer);

// While it lives, the state of an optimizer that has_known_state consists of copies.
class StateInCopies {
 public:
  StateInCopies(const torch::optim::Optimizer& optimizer, CheckpointCopies& copies);
  ~StateInCopies();
  StateInCopies(const StateInCopies&) = delete;
  StateInCopies& operator=(const StateInCopies&) = delete;

 private:
  std::vector<std::pair<at::Tensor*, at::Tensor>> own_;  // places in the state, and their tensors
};

}  // namespace tune
