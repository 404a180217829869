// Trainable: the class that users write. One object lives in one worker process, for one attempt of
// a trial. Its methods are called from that process's main thread: setup, then load when the trial
// goes on from a checkpoint, then step after step; save at a step boundary. An exception ends the
// attempt as an error with the exception's message.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
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

class TensorBoardWriter;

// The place of this worker. Filled before setup; iteration moves on with each step.
class Context {
 public:
  const std::string& trial_id() const { return trial_id_; }
  std::uint32_t attempt() const { return attempt_; }              // 1, 2, ...
  const std::filesystem::path& trial_directory() const { return trial_directory_; }
  std::uint64_t seed() const { return seed_; }  // of this trial; same on all ranks
  std::uint64_t iteration() const { return iteration_; }  // steps completed since the trial began
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  int local_rank() const { return local_rank_; }
  int cpus() const { return cpus_; }                              // threads this rank should use
  // The GPUs of this trial on this node, as this rank sees them: the entries of
  // CUDA_VISIBLE_DEVICES.
  const std::vector<std::string>& gpu_ids() const { return gpu_ids_; }
  // This rank's own device: a GPU when the trial holds any, which becomes the current one, else the
  // CPU. For code that includes <tune/torch.h> and links tune::torch; see own_device().
  c10::Device device() const;
  // One process of the node runs `function`, the others wait until it is done; its exception is
  // thrown in all of them. When that process dies, the next one runs it. Once an experiment.
  void once_per_node(const std::string& name, const std::function<void()>& function) const;
  // Runs `function` on this rank, for which the other ranks of the trial wait when they form their
  // group, in their next collective or at the end of the step, and returns its value: validation by
  // rank 0, data that it prepares in setup, or a large file that it writes. It may take
  // RunOptions::alone_timeout_s instead of group_timeout_s. No collective within it, as the others
  // take no part. (A save does not need this.)
  template <class Function>
  decltype(auto) alone(Function&& function) const {
    const Solitude solitude;
    return std::forward<Function>(function)();
  }
  // Files that the trial hands out while it runs: below results/ in its folder.
  NamedResults results() const { return NamedResults(trial_directory_ / "results"); }
  // For a save: runs `write`, which writes a copy that the save took into its folder, in another
  // thread while the next steps go on; what is not a trial's rank 0 runs it at once. The checkpoint
  // is complete when all parts are written: the next save, a pause, a stop and the end wait for
  // that, and a failure of `write` is one of the save. It is called once and must own all it uses.
  void write_beside(std::function<void()> write) const;
  // Images, histograms, text and numbers for TensorBoard, by rank 0; on other ranks, and in a
  // trainable that was restored outside of a sweep, it takes them and writes nothing.
  TensorBoardWriter& writer() const;

 private:
  friend class WorkerSession;
  friend class ContextBuilder;
  std::string trial_id_;
  std::uint32_t attempt_ = 1;
  std::filesystem::path trial_directory_;
  std::string once_directory_;
  std::uint64_t seed_ = 0;
  std::uint64_t iteration_ = 0;
  int rank_ = 0;
  int world_size_ = 1;
  int local_rank_ = 0;
  int cpus_ = 1;
  std::vector<std::string> gpu_ids_;
  std::vector<std::function<void()>>* later_ = nullptr;  // of the save under way, if it takes any
  bool is_attempt_ = false;  // not of a trainable that was restored outside of a sweep
  mutable std::shared_ptr<TensorBoardWriter> writer_;
};

class Trainable {
 public:
  virtual ~Trainable() = default;
  virtual void setup(const Config& config) = 0;
  virtual Result step() = 0;
  // Optional. Writes into / reads from an existing folder that belongs to this checkpoint alone.
  virtual void save(const std::filesystem::path& directory);
  virtual void load(const std::filesystem::path& directory);

 protected:
  const Context& context() const { return *context_; }

 private:
  friend class TrainableAccess;
  const Context* context_ = nullptr;
};

}  // namespace tune
