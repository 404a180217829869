// Access to Context and Trainable for the framework itself: for the worker loop, and for a
// Trainable that is restored in the caller's own process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/worker_contract.h"
#include "trainables/trainable.h"

namespace tune {

class ContextBuilder {
 public:
  // The context of a worker. Its iteration is the one it goes on from.
  static Context for_worker(const StartWorker& start);
  // Outside a worker: one rank, no GPUs promised; once_per_node just runs the function.
  static Context for_restore(std::string trial_id, std::filesystem::path trial_directory,
                             std::uint64_t seed, std::uint64_t iteration);
};

class TrainableAccess {
 public:
  // The context must outlive the trainable.
  static void set_context(Trainable& trainable, const Context& context) {
    trainable.context_ = &context;
  }
};

}  // namespace tune
