// Processes that carry out commands together: the ranks of a TorchTrainer. Free of torch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/platform/kept_process.h"
#include "core/platform/process.h"
#include "core/value.h"

namespace tune {

class TrainerWorkers {
 public:
  // Carries out one command in a worker.
  using Serve = std::function<Value(const Value& command)>;

  // Forks the workers; each has so many threads. `begin` runs in each of them, with the environment
  // of a rank, and makes what serves its commands. Returns when it did in all. Throws Error
  // (kProcess) when this process cannot be forked, and as call().
  TrainerWorkers(int workers, int threads, bool use_gpu, const std::function<Serve()>& begin);
  ~TrainerWorkers();  // ends them at once

  // The same command to all; rank 0's answer when all are done. Throws an Error with the message of
  // the first worker that threw, and its code if that was an Error; else (kProcess), also for a
  // worker that ended, with how. Then all have ended and nothing can be called.
  Value call(const Value& command);

  // Lets them end by themselves; returns when they have.
  void end();

 private:
  struct Connection;
  Value answers();
  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::kProcess);
  std::string how_it_ended();  // empty: as the workers themselves said

  std::vector<Connection> connections_;
  FileDescriptor end_report_;  // what the process that keeps the workers says at its end
  std::unique_ptr<KeptProcess> keeper_;
};

}  // namespace tune
