// The variables that a rank finds in its environment: torchrun's and our own. Their names and rules
// stand here alone, for all that start ranks: an agent, `tune launch`, a Distributor or a
// TorchTrainer. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

using Environment = std::map<std::string, std::string>;

// Where the ranks of a node stand in the group.
struct RankPlace {
  int local_ranks = 1;  // on each node
  int nodes = 1;
  int node = 0;
  std::string master_address = "127.0.0.1";
  int master_port = 0;  // 0: not known yet, see add_rendezvous
  int threads = 1;      // of each rank

  int first_rank() const { return node * local_ranks; }
};

// Whether the user has set a variable; such a variable is left as it is.
using UserHasSet = std::function<bool(const std::string& name)>;

// RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, ROLE_*,
// MASTER_ADDR, MASTER_PORT and TORCHELASTIC_*, and the number of threads, unless the user has set
// it. TUNE_DEVICE_INDEX says that its own GPU is the one of its local rank: see add_gpus.
Environment rank_environment(const RankPlace& place, int local_rank,
                             const UserHasSet& user_has_set);

// For ranks without GPUs: LibTorch's DDP asks their backend for the memory of its buckets, which it
// else does not. Of NCCL's this has not been tried.
void add_bucket_memory(Environment& environment, const UserHasSet& user_has_set);

// MASTER_ADDR and MASTER_PORT alone.
void add_rendezvous(Environment& environment, const std::string& address, int port);

// ---- GPUs ---------------------------------------------------------------------------------------

// CUDA shows a process one MIG instance at most, whatever CUDA_VISIBLE_DEVICES lists.
inline bool is_mig_instance(std::string_view device) {
  return device.starts_with("MIG-");
}

// The devices shown to a rank, and which of them is its own (the first, if it has several).
struct ShownGpus {
  std::vector<std::string> devices;
  std::size_t own = 0;
};
// The devices shown to a rank of a group with these devices, `own_count` of which, from `own` on,
// are its own: all of them. With a MIG instance among them: the rank's own alone, as CUDA would
// show all ranks the first instance.
ShownGpus shown_gpus(std::vector<std::string> devices, std::size_t own, std::size_t own_count);

// CUDA_VISIBLE_DEVICES and TUNE_DEVICE_INDEX.
void add_gpus(Environment& environment, const ShownGpus& gpus);

}  // namespace tune
