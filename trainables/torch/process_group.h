// A group of ranks: the processes of one attempt, which train one model together. Speaks NCCL for
// tensors on GPUs, and for those of the CPU through shared memory where all ranks are on one host
// and have inherited it, else Gloo; a rank alone speaks to nobody and waits for nobody.
//
// All ranks call the same functions in the same order, each from one thread. Every wait ends with
// the group's timeout at the latest, but takes longer while a rank is alone (in context().alone()
// or a save), for its time begins anew then, up to the time that it may be alone. In a trial that
// holds for forming the group as well: the agent knows which rank is alone. A failure throws Error
// (kProcess) that says what this rank was waiting for and, when the others wait for something else,
// for what; the group is of no use then. A process that forms a group ignores SIGPIPE from then on,
// as Python does, unless it has a handler.
//
// On GPUs that is so for forming a group and for what computes on the CPU only. There the functions
// return when the work is queued; a rank whose work is not done in time ends itself (SIGABRT, with
// words on stderr), and the agent or launcher ends the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainables/torch/device.h"

namespace c10d {
class ProcessGroup;
}

namespace tune {

enum class Reduce { kSum, kMean, kMin, kMax };

// Where the ranks of a group find each other.
struct Rendezvous {
  int rank = 0;
  int size = 1;
  std::string address = "127.0.0.1";  // of rank 0
  int port = 0;
  // Rank 0: a socket that listens on that port already, so that no other process can take the port;
  // given away. Without it rank 0 binds the port itself.
  std::optional<int> listening_socket;
  // Memory (a memfd) that the ranks of this host inherited; given away. A group whose ranks all
  // have the same speaks through it. See trainables/shared_memory.
  std::optional<int> shared_memory = {};

  // RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them and, from the agent,
  // TUNE_RENDEZVOUS_FD and TUNE_SHARED_MEMORY_FD, which are then taken out of the environment: they
  // serve one group.
  // Without WORLD_SIZE: one rank. Throws Error (kBadInput) that names the variable.
  static Rendezvous from_environment();
};

// TUNE_GROUP_TIMEOUT_S, which is a trial's group_timeout_s; 60 s where it is not set.
std::chrono::milliseconds group_timeout();
// TUNE_ALONE_TIMEOUT_S, which is a trial's alone_timeout_s; 600 s where it is not set.
std::chrono::milliseconds alone_timeout();

// Whether TUNE_GROUP_SPEAKS is "gloo"; throws Error (kBadInput) when it is anything else than that or
// "any", which is as if it were not set.
bool wants_gloo();

struct GroupOptions {
  std::chrono::milliseconds timeout = group_timeout();
  // This rank's own; own_device() is what the environment says.
  c10::Device device = c10::kCPU;
  // Gloo for tensors on GPUs as well: slower, but goes with MIG instances, which NCCL does not
  // connect. Where ranks share a GPU, or another rank wants it, Gloo is taken anyway.
  bool gloo_for_gpu = sees_mig_instance();
  std::chrono::milliseconds alone_timeout = tune::alone_timeout();
  // Gloo for tensors of the CPU even where the ranks could speak through shared memory. When one
  // rank wants it, all take it.
  bool gloo_for_cpu = wants_gloo();
};

// A handle: copies are the same group, which ends with the last of them.
class ProcessGroup {
 public:
  // A group of one.
  ProcessGroup();
  // Returns when all ranks are there.
  explicit ProcessGroup(Rendezvous rendezvous, const GroupOptions& options = {});

  int rank() const;
  int size() const;
  c10::Device device() const;
  std::chrono::milliseconds timeout() const;

  // In place; the same result on all ranks, bit for bit. `what` is for the message of an error.
  // kMean of whole numbers is refused.
  void all_reduce(at::Tensor tensor, Reduce reduce = Reduce::kSum, const std::string& what = {});
  // In place: what rank `from` has.
  void broadcast(at::Tensor tensor, int from = 0, const std::string& what = {});
  // One from each rank, in their order; all of the same shape and type.
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor, const std::string& what = {});
  // The same for texts, which may be of any bytes and lengths.
  std::vector<std::string> all_gather_texts(const std::string& text, const std::string& what = {});
  void barrier(const std::string& what = {});
  void send(const at::Tensor& tensor, int to, int tag = 0);
  void receive(at::Tensor tensor, int from, int tag = 0);

  // Another group of the same ranks, whose collectives do not mix with those of this one. All ranks
  // call it.
  ProcessGroup duplicate();
  // One for layers that speak within the forwards and backwards of a model whose gradients this
  // group reduces: a Gloo of its own, but the same NCCL. The collectives of one communicator come
  // in the order in which all ranks begin them, which the model gives; two would take the GPU's
  // memory twice, and may wait for each other for ever. All ranks call it.
  ProcessGroup for_layers();

  // LibTorch's own process group, for calls that are not offered here; null for one rank.
  const c10::intrusive_ptr<c10d::ProcessGroup>& c10d() const;
  // The message for `error`, thrown while this rank waited for `what` since `began`.
  std::string explain(const std::string& what, const std::exception& error,
                      std::chrono::steady_clock::time_point began) const;

 private:
  struct State;
  ProcessGroup copy(bool shares_nccl);
  std::shared_ptr<State> state_;
};

}  // namespace tune
