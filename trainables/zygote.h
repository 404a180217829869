// The zygote: a process that has loaded the trainables once and then only forks workers. It makes
// no threads and calls nothing of the trainables, so its children are free to do everything.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/worker_contract.h"
#include "trainables/registry.h"

namespace tune {

struct ZygoteTrainables {
  std::vector<TrainableInfo> infos;
  // Runs trainable number `index` over the worker's socket; returns the process's exit code.
  std::function<int(std::uint32_t index, int socket)> run_worker;
  std::string error;  // why there are no trainables to run; sent to the agent
  std::string note;   // shown to the user once as a warning
  // prepare_gpu_zygote() of the libraries that the trainables are linked with; empty: none.
  std::function<std::string()> prepare_for_gpus;
};

// The trainables of this program or plugin itself.
ZygoteTrainables trainables_of(std::vector<TrainableEntry> entries);

// For trials with GPUs (kGpuTrialsVariable) it first calls prepare_for_gpus, whose text the user
// sees once. Says ZygoteReady on `control_socket` (SOCK_SEQPACKET to the agent, which is the parent
// of this process) and forks a worker for each SpawnRequest, until the agent closes it. Marks every
// open descriptor above 2 close-on-exec. Workers are forked twice, so that they become children of
// the agent (a subreaper); each has a session of its own, default signal handling, and is killed
// when the agent dies.
[[noreturn]] void run_zygote(int control_socket, ZygoteTrainables trainables);

}  // namespace tune
