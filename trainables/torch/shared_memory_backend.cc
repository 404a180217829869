#include "trainables/torch/shared_memory_backend.h"

#include <exception>
#include <utility>

#include "trainables/rank_failure.h"
#include "trainables/torch/shared_memory_tensors.h"
#include "trainables/torch/shared_memory_work.h"

namespace tune {

using shared_memory::Call;
using shared_memory::CallKind;
using shared_memory::Conversation;
using shared_memory::Dense;
using shared_memory::Exchange;
using shared_memory::expect_alike;
using shared_memory::expect_dense_on_cpu;
using shared_memory::In;
using shared_memory::Messages;
using shared_memory::one_a_rank;
using shared_memory::only;
using shared_memory::OperationPtr;
using shared_memory::Out;
using shared_memory::own_timeout;
using shared_memory::place;
using shared_memory::RankMemory;
using shared_memory::split_by_rank;
using Pace = Conversation::Pace;

SharedMemoryBackend::SharedMemoryBackend(std::unique_ptr<RankMemory> memory,
                                         const shared_memory::Patience& patience)
    : Backend(memory->rank(), memory->size()),
      conversation_(std::make_shared<Conversation>(std::move(memory), patience)) {}

SharedMemoryBackend::~SharedMemoryBackend() {
  if (has_rank_failed() || std::uncaught_exceptions() > 0) abort();
}

c10::intrusive_ptr<c10d::Backend::Options> SharedMemoryBackend::getBackendOptions() {
  return c10::make_intrusive<Options>(getBackendName());
}

void SharedMemoryBackend::setTimeout(std::chrono::milliseconds timeout) {
  conversation_->set_longest(timeout);
}

std::uint64_t SharedMemoryBackend::getSequenceNumberForGroup() {
  return conversation_->calls();
}

void SharedMemoryBackend::abort() {
  conversation_->abort("the group was given up by this rank");
}

void SharedMemoryBackend::shutdown() {
  conversation_->abort("the group was shut down by this rank");
}

at::Tensor SharedMemoryBackend::allocateTensor(long size, at::TensorOptions options) {
  TORCH_CHECK(options.device().is_cpu(), "allocateTensor: a tensor on ", options.device(),
              ", which ranks do not share");
  const auto bytes = static_cast<std::size_t>(size) * options.dtype().itemsize();
  const std::shared_ptr<char> block = memory().segment()->allocate(bytes);
  if (!block) return at::empty({size}, options);
  return at::from_blob(block.get(), {size}, [block](void*) {}, options);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::work(c10d::OpType type,
                                                       std::vector<OperationPtr> operations,
                                                       Tensors outputs) const {
  return c10::make_intrusive<SharedMemoryWork>(type, conversation_, std::move(operations),
                                               std::move(outputs));
}

OperationPtr SharedMemoryBackend::start(Collective collective) {
  const auto make = [&collective](RankMemory& memory, const Call& given) {
    Call call = given;
    call.type = static_cast<std::uint8_t>(collective.type);
    call.root = collective.root;
    call.reduction = collective.reduction;
    return collective.make(memory, call);
  };
  Conversation::Start how{.longest = collective.timeout,
                          .pace = collective.is_async ? Pace::kLooksFirst : Pace::kWaitedFor};
  if (collective.finish) {
    how.finish = [finish = std::move(collective.finish)] {
      const at::NoGradGuard no_gradients;
      finish();
    };
  }
  return conversation_->collective(collective.kind, make, std::move(how));
}

// ---- From one to all ----------------------------------------------------------------------------

SharedMemoryBackend::WorkPtr SharedMemoryBackend::broadcast(Tensors& tensors,
                                                            const c10d::BroadcastOptions& how) {
  const Dense tensor(only(tensors, "broadcast"));
  const bool is_root = how.rootRank == rank_;
  Collective one{CallKind::kBroadcast, own_timeout(how), how.asyncOp, tensor.values.scalar_type(),
                 static_cast<int>(how.rootRank)};
  one.make = [&](RankMemory& memory, const Call& call) {
    return shared_memory::broadcast(memory, call, tensor.bytes(), tensor.size());
  };
  one.finish = [tensor, is_root] {
    if (!is_root) tensor.give_back();
  };
  return work(c10d::OpType::BROADCAST, {start(std::move(one))}, tensors);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::scatter(Tensors& outputs,
                                                          std::vector<Tensors>& inputs,
                                                          const c10d::ScatterOptions& how) {
  const Dense output(only(outputs, "scatter"));
  const int root = static_cast<int>(how.rootRank);
  std::vector<Dense> keep;
  std::vector<Out> out;
  if (root == rank_) {
    const Tensors& list = one_a_rank(inputs, size_, "scatter");
    for (int rank = 0; rank < size_; ++rank) {
      expect_alike(list[place(rank)], output.given, "scatter");
      keep.emplace_back(list[place(rank)]);
      if (rank != rank_) out.push_back({rank, keep.back().bytes(), keep.back().size()});
    }
  }
  Collective one{CallKind::kScatter, own_timeout(how), how.asyncOp, output.values.scalar_type(),
                 root};
  one.make = [&](RankMemory& memory, const Call& call) {
    std::vector<In> in;
    if (root != rank_) in.push_back({root, output.bytes(), output.size()});
    return std::make_unique<Exchange>(memory, call, out, in);
  };
  one.finish = [output, keep, own = rank_] {
    if (keep.empty()) return output.give_back();
    output.given.copy_(keep[place(own)].values.view_as(output.given));
  };
  return work(c10d::OpType::SCATTER, {start(std::move(one))}, outputs);
}

// ---- From all to all or one ---------------------------------------------------------------------

OperationPtr SharedMemoryBackend::start_all_gather(const Tensors& outputs, const at::Tensor& given,
                                                   Collective one) {
  const Dense input(given);
  std::vector<Dense> keep;
  for (const at::Tensor& output : outputs) {
    expect_alike(output, given, "all_gather");
    keep.emplace_back(output);
  }
  one.type = given.scalar_type();
  one.make = [&](RankMemory& memory, const Call& call) {
    std::vector<Out> out;
    std::vector<In> in;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      out.push_back({rank, input.bytes(), input.size()});
      in.push_back({rank, keep[place(rank)].bytes(), input.size()});
    }
    return std::make_unique<Exchange>(memory, call, out, in);
  };
  one.finish = [keep, input, own = rank_, after = std::move(one.finish)] {
    for (const Dense& output : keep) output.give_back();
    const at::Tensor& output = keep[place(own)].given;
    if (output.const_data_ptr() != input.values.const_data_ptr()) {
      output.copy_(input.values.view_as(output));
    }
    if (after) after();
  };
  return start(std::move(one));
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::allgather(std::vector<Tensors>& outputs,
                                                            Tensors& inputs,
                                                            const c10d::AllgatherOptions& how) {
  const at::Tensor& input = only(inputs, "all_gather");
  const Tensors& list = one_a_rank(outputs, size_, "all_gather");
  const Collective one{CallKind::kAllGather, own_timeout(how), how.asyncOp};
  return work(c10d::OpType::ALLGATHER, {start_all_gather(list, input, one)}, list);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::_allgather_base(
    at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& how) {
  Tensors outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, how);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& how) {
  TORCH_CHECK(outputs.size() == inputs.size(), "all_gather: ", inputs.size(), " tensors into ",
              outputs.size());
  std::vector<OperationPtr> operations;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    expect_dense_on_cpu(inputs[i], "all_gather");
    expect_dense_on_cpu(outputs[i], "all_gather");
    TORCH_CHECK(outputs[i].numel() == size_ * inputs[i].numel(), "all_gather of ", size_,
                " tensors of shape ", inputs[i].sizes(), " into one of ", outputs[i].sizes());
    const Dense whole(outputs[i]);
    Collective one{CallKind::kAllGather, own_timeout(how), how.asyncOp};
    one.finish = [whole] { whole.give_back(); };  // its parts are views of its values
    operations.push_back(start_all_gather(split_by_rank(whole.values, size_), inputs[i], one));
  }
  return work(c10d::OpType::_ALLGATHER_BASE, std::move(operations), outputs);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::allgather_coalesced(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& how) {
  TORCH_CHECK(outputs.size() == place(size_), "all_gather takes a list of tensors for each rank");
  std::vector<OperationPtr> operations;
  Tensors all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    expect_dense_on_cpu(inputs[i], "all_gather");
    Tensors list;
    for (const Tensors& of_rank : outputs) list.push_back(of_rank.at(i));
    const Collective one{CallKind::kAllGather, own_timeout(how), how.asyncOp};
    operations.push_back(start_all_gather(list, inputs[i], one));
    all.insert(all.end(), list.begin(), list.end());
  }
  return work(c10d::OpType::ALLGATHER_COALESCED, std::move(operations), std::move(all));
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::gather(std::vector<Tensors>& outputs,
                                                         Tensors& inputs,
                                                         const c10d::GatherOptions& how) {
  const Dense input(only(inputs, "gather"));
  const int root = static_cast<int>(how.rootRank);
  Tensors list;
  std::vector<Dense> keep;
  if (root == rank_) list = one_a_rank(outputs, size_, "gather");
  for (const at::Tensor& output : list) {
    expect_alike(output, input.given, "gather");
    keep.emplace_back(output);
  }
  Collective one{CallKind::kGather, own_timeout(how), how.asyncOp, input.values.scalar_type(),
                 root};
  one.make = [&](RankMemory& memory, const Call& call) {
    std::vector<Out> out;
    std::vector<In> in;
    if (root != rank_) out.push_back({root, input.bytes(), input.size()});
    for (int rank = 0; rank < size_ && root == rank_; ++rank) {
      if (rank != rank_) in.push_back({rank, keep[place(rank)].bytes(), input.size()});
    }
    return std::make_unique<Exchange>(memory, call, out, in);
  };
  one.finish = [keep, input, own = rank_] {
    for (const Dense& output : keep) output.give_back();
    if (!keep.empty()) keep[place(own)].given.copy_(input.values.view_as(keep[place(own)].given));
  };
  return work(c10d::OpType::GATHER, {start(std::move(one))}, list);
}

OperationPtr SharedMemoryBackend::start_all_to_all(const Tensors& outputs, const Tensors& inputs,
                                                   Collective one) {
  std::vector<Dense> from, to;
  for (const at::Tensor& input : inputs) from.emplace_back(input);
  for (const at::Tensor& output : outputs) to.emplace_back(output);
  expect_alike(outputs[place(rank_)], inputs[place(rank_)], "all_to_all");
  one.type = inputs[0].scalar_type();
  one.make = [&](RankMemory& memory, const Call& call) {
    std::vector<Out> out;
    std::vector<In> in;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      out.push_back({rank, from[place(rank)].bytes(), from[place(rank)].size()});
      in.push_back({rank, to[place(rank)].bytes(), to[place(rank)].size()});
    }
    return std::make_unique<Exchange>(memory, call, out, in);
  };
  one.finish = [from, to, own = rank_, after = std::move(one.finish)] {
    for (const Dense& output : to) output.give_back();
    to[place(own)].given.copy_(from[place(own)].values.view_as(to[place(own)].given));
    if (after) after();
  };
  return start(std::move(one));
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                           const c10d::AllToAllOptions& how) {
  TORCH_CHECK(outputs.size() == place(size_) && inputs.size() == place(size_),
              "all_to_all takes a tensor from and for each of ", size_, " ranks");
  for (const Tensors& list : {outputs, inputs}) {
    for (const at::Tensor& tensor : list) expect_dense_on_cpu(tensor, "all_to_all");
  }
  const Collective one{CallKind::kAllToAll, own_timeout(how), how.asyncOp};
  return work(c10d::OpType::ALLTOALL, {start_all_to_all(outputs, inputs, one)}, outputs);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_sizes,
    std::vector<std::int64_t>& input_sizes, const c10d::AllToAllOptions& how) {
  expect_dense_on_cpu(output, "all_to_all");
  expect_dense_on_cpu(input, "all_to_all");
  c10d::checkSplitSizes(input_sizes, input, size_);
  c10d::checkSplitSizes(output_sizes, output, size_);
  const auto rows = [this](const at::Tensor& whole, const std::vector<std::int64_t>& sizes) {
    Tensors parts;
    std::int64_t begin = 0;
    for (int rank = 0; rank < size_; ++rank) {
      const std::int64_t count = sizes.empty() ? whole.size(0) / size_ : sizes[place(rank)];
      parts.push_back(whole.narrow(0, begin, count));
      begin += count;
    }
    return parts;
  };
  const Collective one{CallKind::kAllToAll, own_timeout(how), how.asyncOp};
  return work(c10d::OpType::ALLTOALL_BASE,
              {start_all_to_all(rows(output, output_sizes), rows(input, input_sizes), one)},
              {output});
}

// ---- Barriers and messages ----------------------------------------------------------------------

SharedMemoryBackend::WorkPtr SharedMemoryBackend::barrier(const c10d::BarrierOptions& how) {
  Collective one{CallKind::kBarrier, own_timeout(how), how.asyncOp};
  one.make = [this](RankMemory& memory, const Call& call) {
    std::vector<Out> out;
    std::vector<In> in;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      out.push_back({rank, nullptr, 0});
      in.push_back({rank, nullptr, 0});
    }
    return std::make_unique<Exchange>(memory, call, out, in);
  };
  return work(c10d::OpType::BARRIER, {start(std::move(one))}, {});
}

// The error names the ranks that did not come, on every rank.
void SharedMemoryBackend::monitoredBarrier(const c10d::BarrierOptions& how, bool) {
  barrier(how)->wait(kNoTimeout);
}

// Small ones wait in the sender's ring for their receiver; a large one must be moved meanwhile.
Pace SharedMemoryBackend::pace_of_message(const Dense& tensor) {
  return tensor.size() <= memory().capacity() / 8 ? Pace::kWaitedFor : Pace::kInBackground;
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::send(Tensors& tensors, int to, int tag) {
  TORCH_CHECK(to >= 0 && to < size_ && to != rank_, "send to rank ", to, " of ", size_, " by rank ",
              rank_);
  const Dense tensor(only(tensors, "send"));
  const auto make = [&](Messages& messages) {
    return messages.send(to, tag, tensor.bytes(), tensor.size());
  };
  return work(
      c10d::OpType::SEND,
      {conversation_->message(make, {.finish = [tensor] {}, .pace = pace_of_message(tensor)})}, {});
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::recv(Tensors& tensors, int from, int tag) {
  TORCH_CHECK(from >= 0 && from < size_ && from != rank_, "receive from rank ", from, " of ", size_,
              " by rank ", rank_);
  return receive(tensors, from, tag);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::recvAnysource(Tensors& tensors, int tag) {
  return receive(tensors, shared_memory::kAnyRank, tag);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::receive(Tensors& tensors, int from, int tag) {
  const Dense tensor(only(tensors, "receive"));
  const auto source = std::make_shared<int>(-1);
  const auto make = [&](Messages& messages) {
    return messages.receive(from, tag, tensor.bytes(), tensor.size(), source.get());
  };
  Conversation::Start how{.finish =
                              [tensor, source] {
                                const at::NoGradGuard no_gradients;
                                tensor.give_back();
                              },
                          .pace = pace_of_message(tensor)};
  auto received = c10::make_intrusive<SharedMemoryWork>(
      from < 0 ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV, conversation_,
      std::vector<OperationPtr>{conversation_->message(make, std::move(how))}, tensors);
  received->set_source(source);
  return received;
}

}  // namespace tune
