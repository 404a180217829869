#include "trainables/torch/step_graph.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <map>

#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

std::string kind_of(const Batch& batch, std::int64_t share) {
  std::string kind = describe(batch.data);
  if (batch.target.defined()) kind += ", " + describe(batch.target);
  return share == 1 ? kind : kind + ", one of " + std::to_string(share);
}

at::Tensor like(const at::Tensor& tensor) {
  return tensor.defined() ? at::empty_like(tensor) : tensor;
}

// A gradient's own place in `flat`, in the order in which the parameter lies.
at::Tensor view_at(const at::Tensor& flat, std::int64_t offset, const at::Tensor& parameter) {
  if (parameter.is_non_overlapping_and_dense()) {
    return flat.as_strided(parameter.sizes(), parameter.strides(), offset);
  }
  return flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
}

}  // namespace

// ---- The plan -----------------------------------------------------------------------------------

GraphPlan::Way GraphPlan::next(const std::string& kind, bool begins) {
  in_a_row_ = kind == last_ ? in_a_row_ + 1 : 1;
  last_ = kind;
  ++batches_;
  if (kind == recorded_) {
    ++replays_;
    return Way::kReplay;
  }
  // An epoch's last batch is often smaller; other shapes that stay take the record's place.
  if (in_a_row_ > kWarmUps && begins) {
    recorded_ = kind;
    ++replays_;
    return Way::kRecord;
  }
  if (!recorded_.empty()) last_other_ = kind;
  return Way::kDirect;
}

void GraphPlan::forget() {
  recorded_.clear();
  in_a_row_ = 0;
}

std::optional<std::string> GraphPlan::notice() {
  if (was_said_ || batches_ < kLookedAt || 2 * replays_ >= batches_) return std::nullopt;
  was_said_ = true;
  const std::string start = "cuda_graph was of use for " + std::to_string(replays_) + " of " +
                            std::to_string(batches_) + " batches: ";
  const std::string remedy = ": give batches one shape (drop_last), or leave it out";
  if (recorded_.empty()) {
    return start + "no " + std::to_string(kWarmUps + 1) +
           " in a row had the same shape, the last was (" + last_ + ")" + remedy;
  }
  return start + "recorded is (" + recorded_ + "), another was (" + last_other_ + ")" + remedy;
}

// ---- The graph ----------------------------------------------------------------------------------

GraphPlan::Way StepGraph::next(const Batch& batch, std::int64_t share, bool begins) {
  return plan_.next(kind_of(batch, share), begins);
}

void StepGraph::hold_gradients(const std::vector<at::Tensor>& parameters) {
  std::map<at::ScalarType, std::vector<at::Tensor>> types;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    if (parameter.grad().is_sparse()) {
      bad_input("cuda_graph does not go with sparse gradients: leave one of them out");
    }
    types[parameter.scalar_type()].push_back(parameter);
  }
  for (const auto& [type, alike] : types) {
    std::int64_t numbers = 0;
    for (const at::Tensor& parameter : alike) numbers += parameter.numel();
    const at::Tensor flat = at::zeros({numbers}, alike.front().options().requires_grad(false));
    std::int64_t offset = 0;
    for (const at::Tensor& parameter : alike) {
      parameter.mutable_grad() = view_at(flat, offset, parameter.detach());
      offset += parameter.numel();
    }
    gradients_.push_back(flat);
  }
}

void StepGraph::forget() {
  plan_.forget();
  gradients_.clear();
}

void StepGraph::zero() {
  for (at::Tensor& gradient : gradients_) gradient.zero_();
}

void StepGraph::record(const Batch& batch,
                       const std::function<at::Tensor(const Batch&)>& forward_and_backward) {
  batch_ = {like(batch.data), like(batch.target)};
  loss_.reset();
  try {
    device_->record(
        [this, forward_and_backward] { loss_ = forward_and_backward(batch_).detach(); });
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    bad_input("forward and backward cannot be recorded as a CUDA graph (" + cause_of(error) +
              "): what waits for the GPU (item(), printing, an index by bools, a copy to the CPU) "
              "and collectives (SyncBatchNorm) do not go into one: leave them out, or cuda_graph");
  }
}

at::Tensor StepGraph::replay(const Batch& batch) {
  batch_.data.copy_(batch.data, /*non_blocking=*/true);
  if (batch.target.defined()) batch_.target.copy_(batch.target, /*non_blocking=*/true);
  device_->replay();
  return loss_.clone();
}

}  // namespace tune
