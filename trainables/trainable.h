// Trainable: what users write. One object lives in one worker process, for one attempt of a trial.
// Its methods are called from that process's main thread: setup, then load when the trial goes on
// from a checkpoint, then step after step; save at a step boundary. What they throw ends the attempt
// as an error with the exception's message.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/value.h"
#include "trainables/named_results.h"
#include "trainables/solitude.h"

namespace c10 {
struct Device;
}

namespace tune {

// Where this worker stands. Filled before setup; iteration moves on with each step.
class Context {
 public:
  const std::string& trial_id() const { return trial_id_; }
  std::uint32_t attempt() const { return attempt_; }              // 1, 2, ...
  const std::filesystem::path& trial_directory() const { return trial_directory_; }
  std::uint64_t seed() const { return seed_; }                    // of this trial; same on all ranks
  std::uint64_t iteration() const { return iteration_; }          // steps completed since the trial began
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  int local_rank() const { return local_rank_; }
  int cpus() const { return cpus_; }                              // threads this rank should use
  // Of this trial on this node, as this rank sees them: what CUDA_VISIBLE_DEVICES holds.
  const std::vector<std::string>& gpu_ids() const { return gpu_ids_; }
  // This rank's own device: a GPU when the trial holds any, which is made the current one, else the
  // CPU. For those who include <tune/torch.h> and link tune::torch; see own_device().
  c10::Device device() const;
  // One process of the node runs `function`, the others wait until it is done; what it throws is
  // thrown in all of them. When the one that runs it dies, the next one runs it. Once an experiment.
  void once_per_node(const std::string& name, const std::function<void()>& function) const;
  // Runs `function` on this rank, which the other ranks of the trial wait for in their next
  // collective or at the end of the step, and gives back what it returns: validation by rank 0, or a
  // large file that it writes. It may take RunOptions::alone_timeout_s instead of group_timeout_s.
  // No collective within it, as the others take no part. (A save needs none of this.)
  template <class Function>
  decltype(auto) alone(Function&& function) const {
    const Solitude solitude;
    return std::forward<Function>(function)();
  }
  // Files handed out while the trial runs: below results/ in the trial's folder.
  NamedResults results() const { return NamedResults(trial_directory_ / "results"); }

 private:
  friend class WorkerSession;
  friend class ContextBuilder;
  std::string trial_id_;
  std::uint32_t attempt_ = 1;
  std::filesystem::path trial_directory_;
  std::filesystem::path once_directory_;
  std::uint64_t seed_ = 0;
  std::uint64_t iteration_ = 0;
  int rank_ = 0;
  int world_size_ = 1;
  int local_rank_ = 0;
  int cpus_ = 1;
  std::vector<std::string> gpu_ids_;
};

class Trainable {
 public:
  virtual ~Trainable() = default;
  virtual void setup(const Config& config) = 0;
  virtual Result step() = 0;
  // Optional. Writes into / reads from an existing folder that is this checkpoint's alone.
  virtual void save(const std::filesystem::path& directory);
  virtual void load(const std::filesystem::path& directory);

 protected:
  const Context& context() const { return *context_; }

 private:
  friend class TrainableAccess;
  const Context* context_ = nullptr;
};

}  // namespace tune
