// The backends of a group of ranks: Gloo for tensors of the CPU, NCCL or Gloo for those of GPUs.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "trainables/torch/group_watch.h"
#include "trainables/torch/process_group.h"

namespace tune {

// The time that ranks wait for each other.
struct GroupTimes {
  std::chrono::milliseconds timeout;  // of forming the group
  // Of a collective: the watch gives up earlier, when no rank is alone.
  std::chrono::milliseconds longest;
  std::shared_ptr<GroupWatch> watch;
};

// NCCL of a group and of those that share it, which ends with the last of them. After a failure
// there is nothing to wait for, and it is aborted: shutdown waits for what is under way, and so for
// ranks that wait for this one. The failure is one of its own, one that is thrown just now, or one
// that the worker has caught (say_rank_failed).
class Nccl {
 public:
  explicit Nccl(c10::intrusive_ptr<c10d::Backend> backend) : backend_(std::move(backend)) {}
  ~Nccl();
  Nccl(const Nccl&) = delete;

  const c10::intrusive_ptr<c10d::Backend>& backend() const { return backend_; }
  void say_failed() { has_failed_ = true; }

 private:
  c10::intrusive_ptr<c10d::Backend> backend_;
  bool has_failed_ = false;
};

// A rank's word to the others on the device that it computes on: the GPU's own number or, where the
// rank takes no part in NCCL, nothing.
std::string nccl_device(const GroupOptions& options);
// NCCL connects ranks that have a GPU each.
bool can_speak_nccl(const std::vector<std::string>& devices);

std::shared_ptr<Nccl> make_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                const Rendezvous& place, const GroupTimes& times);
// Makes Gloo, which looks for the other ranks: this may wait for a rank that does not come, and for
// ever when rank 0 is stopped. nccl: null where GPUs speak Gloo, or there are none.
c10::intrusive_ptr<c10d::ProcessGroup> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                       const Rendezvous& place,
                                                       const GroupTimes& times);
// Adds what speaks for the tensors of GPUs.
void add_gpu(c10d::ProcessGroup& group, c10::Device device, const Nccl* nccl);

}  // namespace tune
