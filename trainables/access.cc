#include "trainables/access.h"

#include <utility>

namespace tune {

Context ContextBuilder::for_worker(const StartWorker& start) {
  Context context;
  context.trial_id_ = start.trial_id;
  context.attempt_ = start.launch.attempt.value;
  context.trial_directory_ = start.trial_directory;
  context.once_directory_ = start.once_directory;
  context.seed_ = start.launch.seed;
  context.iteration_ = start.launch.restore_iteration;
  context.rank_ = static_cast<int>(start.rank);
  context.world_size_ = static_cast<int>(start.launch.ranks);
  context.local_rank_ = static_cast<int>(start.local_rank);
  context.cpus_ = static_cast<int>(start.threads);
  context.gpu_ids_ = start.gpu_devices;
  context.is_attempt_ = true;
  return context;
}

Context ContextBuilder::for_restore(std::string trial_id, std::filesystem::path trial_directory,
                                    std::uint64_t seed, std::uint64_t iteration) {
  Context context;
  context.trial_id_ = std::move(trial_id);
  context.trial_directory_ = std::move(trial_directory);
  context.seed_ = seed;
  context.iteration_ = iteration;
  return context;
}

}  // namespace tune
