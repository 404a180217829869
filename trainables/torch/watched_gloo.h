// Gloo whose collectives, sends and receives are given up by a GroupWatch. They throw then, as with
// a timeout of Gloo's.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <memory>

#include "trainables/torch/group_watch.h"

namespace tune {

class WatchedGloo : public c10d::ProcessGroupGloo {
 public:
  WatchedGloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
              c10::intrusive_ptr<Options> options, std::shared_ptr<GroupWatch> watch);

  // Of collectives that have none of their own; how long ranks look for each other stays.
  void setTimeout(std::chrono::milliseconds timeout) override { longest_ = timeout; }

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& how) override;
  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& how) override;
  WorkPtr allreduce_coalesced(std::vector<at::Tensor>& tensors,
                              const c10d::AllreduceCoalescedOptions& how) override;
  WorkPtr allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                    const c10d::AllgatherOptions& how) override;
  WorkPtr barrier(const c10d::BarrierOptions& how) override;
  WorkPtr send(std::vector<at::Tensor>& tensors, int to, int tag) override;
  WorkPtr recv(std::vector<at::Tensor>& tensors, int from, int tag) override;
  WorkPtr recvAnysource(std::vector<at::Tensor>& tensors, int tag) override;

 private:
  WorkPtr watched(const WorkPtr& work);
  WorkPtr watched_transfer(const WorkPtr& work) const;

  std::shared_ptr<GroupWatch> watch_;
  std::chrono::milliseconds longest_ = c10d::kUnsetTimeout;
};

}  // namespace tune
