// c10d::Backend for tensors on the CPU of ranks of one host, which speak through shared memory
// (trainables/shared_memory). It offers what ProcessGroupGloo does and, beyond it, means, tensors
// that do not lie densely, and collectives of several tensors of different types.
//
// Results are the same on all ranks, bit for bit, and from run to run. Ranks that call different
// things, or with tensors of different sizes, are told so at once.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainables/shared_memory/conversation.h"

namespace tune {

namespace shared_memory {
struct Dense;
}

// The ranks of a group have called different things.
class DifferentCalls : public c10::DistBackendError {
 public:
  using c10::DistBackendError::DistBackendError;
};

class SharedMemoryBackend : public c10d::Backend {
 public:
  SharedMemoryBackend(std::unique_ptr<shared_memory::RankMemory> memory,
                      const shared_memory::Patience& patience);
  // Waits for what is under way, unless this rank has failed.
  ~SharedMemoryBackend() override;

  shared_memory::RankMemory& memory() { return conversation_->memory(); }

  const std::string getBackendName() const override { return "shared_memory"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override;
  void abort() override;
  void shutdown() override;

  // For DDP's buckets: memory that the other ranks reach, so that an all_reduce copies nothing; a
  // plain tensor where the system has no such memory left.
  bool supportsTensorAlloc(c10::DeviceIndex device) override { return device < 0; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& how) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& how) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& how) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& how) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& how) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& how) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& how) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& how) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& how) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& how) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& how) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& how) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& how) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& how) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<std::int64_t>& output_sizes,
                        std::vector<std::int64_t>& input_sizes,
                        const c10d::AllToAllOptions& how) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& how) override;
  WorkPtr barrier(const c10d::BarrierOptions& how) override;
  void monitoredBarrier(const c10d::BarrierOptions& how, bool wait_all_ranks) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

 private:
  struct Collective;
  shared_memory::OperationPtr start(Collective collective);
  shared_memory::OperationPtr start_all_reduce(const at::Tensor& tensor, Collective collective,
                                               const c10d::ReduceOp& reduction);
  shared_memory::OperationPtr start_all_gather(const Tensors& outputs, const at::Tensor& input,
                                               Collective collective);
  shared_memory::OperationPtr start_reduce_scatter(const at::Tensor& output, const Tensors& inputs,
                                                   Collective collective,
                                                   const c10d::ReduceOp& reduction);
  shared_memory::OperationPtr start_all_to_all(const Tensors& outputs, const Tensors& inputs,
                                               Collective collective);
  shared_memory::Conversation::Pace pace_of_message(const shared_memory::Dense& tensor);
  WorkPtr receive(Tensors& tensors, int from, int tag);
  WorkPtr work(c10d::OpType type, std::vector<shared_memory::OperationPtr> operations,
               Tensors outputs) const;

  std::shared_ptr<shared_memory::Conversation> conversation_;
};

}  // namespace tune
