#include "trainables/torch/process_group.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "core/error.h"
#include "trainables/torch/process_group_state.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

std::string named(const std::string& operation, const std::string& what, const at::Tensor& tensor) {
  return operation + " of " + (what.empty() ? std::string() : what + ", ") + describe(tensor);
}

}  // namespace

ProcessGroup::ProcessGroup() : state_(std::make_shared<State>()) {}

ProcessGroup::ProcessGroup(Rendezvous rendezvous, const GroupOptions& options) : ProcessGroup() {
  state_->options = options;
  state_->place = std::move(rendezvous);
  if (!state_->is_alone()) state_->form_first();
}

int ProcessGroup::rank() const {
  return state_->place.rank;
}
int ProcessGroup::size() const {
  return state_->place.size;
}
c10::Device ProcessGroup::device() const {
  return state_->options.device;
}
std::chrono::milliseconds ProcessGroup::timeout() const {
  return state_->options.timeout;
}
const c10::intrusive_ptr<c10d::ProcessGroup>& ProcessGroup::c10d() const {
  return state_->group;
}
std::string ProcessGroup::explain(const std::string& what, const std::exception& error,
                                  std::chrono::steady_clock::time_point began) const {
  return state_->explain(what, error, began);
}

void ProcessGroup::all_reduce(at::Tensor tensor, Reduce reduce, const std::string& what) {
  if (reduce == Reduce::kMean && !tensor.is_floating_point()) {
    throw Error(ErrorCode::kBadInput,
                "the mean over ranks of whole numbers is not a whole number: " +
                    named("all_reduce", what, tensor));
  }
  if (state_->is_alone()) return;
  const at::NoGradGuard no_gradients;
  c10d::AllreduceOptions options;
  options.reduceOp = reduce == Reduce::kMin   ? c10d::ReduceOp::MIN
                     : reduce == Reduce::kMax ? c10d::ReduceOp::MAX
                                              : c10d::ReduceOp::SUM;
  options.timeout = state_->longest();
  options.asyncOp = false;
  // Backends want it dense.
  std::vector<at::Tensor> tensors{tensor.contiguous()};
  state_->run(named("all_reduce", what, tensor),
              [&] { return state_->group->allreduce(tensors, options); });
  if (reduce == Reduce::kMean) tensors[0].div_(size());
  if (!tensors[0].is_same(tensor)) tensor.copy_(tensors[0]);
}

void ProcessGroup::broadcast(at::Tensor tensor, int from, const std::string& what) {
  if (state_->is_alone()) return;
  const at::NoGradGuard no_gradients;
  c10d::BroadcastOptions options;
  options.rootRank = from;
  options.timeout = state_->longest();
  options.asyncOp = false;
  std::vector<at::Tensor> tensors{tensor.contiguous()};
  state_->run(named("broadcast", what, tensor),
              [&] { return state_->group->broadcast(tensors, options); });
  if (!tensors[0].is_same(tensor)) tensor.copy_(tensors[0]);
}

std::vector<at::Tensor> ProcessGroup::all_gather(const at::Tensor& tensor,
                                                 const std::string& what) {
  std::vector<at::Tensor> inputs{tensor.detach().contiguous()};
  if (state_->is_alone()) return {inputs[0].clone()};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < size(); ++rank) outputs[0].push_back(at::empty_like(inputs[0]));
  c10d::AllgatherOptions options;
  options.timeout = state_->longest();
  options.asyncOp = false;
  state_->run(named("all_gather", what, tensor),
              [&] { return state_->group->allgather(outputs, inputs, options); });
  return std::move(outputs[0]);
}

std::vector<std::string> ProcessGroup::all_gather_texts(const std::string& text,
                                                        const std::string& what) {
  if (state_->is_alone()) return {text};
  const auto on = at::TensorOptions().device(c10::kCPU);
  const auto size_of = [](const at::Tensor& length) {
    return *length.const_data_ptr<std::int64_t>();
  };
  const auto length = at::full({1}, static_cast<std::int64_t>(text.size()), on.dtype(at::kLong));
  const std::vector<at::Tensor> lengths = all_gather(length, what + " (length)");
  std::int64_t longest = 1;
  for (const at::Tensor& one : lengths) longest = std::max(longest, size_of(one));
  at::Tensor bytes = at::zeros({longest}, on.dtype(at::kByte));
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  const std::vector<at::Tensor> gathered = all_gather(bytes, what);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    texts.emplace_back(static_cast<const char*>(gathered[i].const_data_ptr()),
                       static_cast<std::size_t>(size_of(lengths[i])));
  }
  return texts;
}

void ProcessGroup::barrier(const std::string& what) {
  if (state_->is_alone()) return;
  c10d::BarrierOptions options;
  options.timeout = state_->longest();
  options.asyncOp = false;
  options.device = device();
  if (device().is_cuda()) options.device_ids = {device().index()};
  state_->run(what.empty() ? "barrier" : "barrier (" + what + ")",
              [&] { return state_->group->barrier(options); });
}

void ProcessGroup::send(const at::Tensor& tensor, int to, int tag) {
  state_->expect_other(to, "send to");
  std::vector<at::Tensor> tensors{tensor.detach().contiguous()};
  state_->run(named("send to rank " + std::to_string(to), {}, tensor),
              [&] { return state_->group->send(tensors, to, tag); });
}

void ProcessGroup::receive(at::Tensor tensor, int from, int tag) {
  state_->expect_other(from, "receive from");
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> tensors{tensor.contiguous()};
  state_->run(named("receive from rank " + std::to_string(from), {}, tensor),
              [&] { return state_->group->recv(tensors, from, tag); });
  if (!tensors[0].is_same(tensor)) tensor.copy_(tensors[0]);
}

ProcessGroup ProcessGroup::duplicate() {
  return copy(false);
}

ProcessGroup ProcessGroup::for_layers() {
  return copy(true);
}

ProcessGroup ProcessGroup::copy(bool shares_nccl) {
  ProcessGroup other;
  other.state_->options = state_->options;
  other.state_->place = state_->place;
  if (state_->is_alone()) return other;
  other.state_->store = c10::make_intrusive<c10d::PrefixStore>(
      "duplicate/" + std::to_string(++state_->duplicates), state_->store);
  other.state_->form(state_.get(), shares_nccl);
  return other;
}

}  // namespace tune
