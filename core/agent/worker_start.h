// What a worker is told at its start, worked out from the launch of its attempt. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/messages.h"

namespace tune {

struct NodeFacts {
  std::vector<GpuInfo> gpus;
  std::string once_directory;
  std::uint32_t agent_pid = 0;
};

// For one rank. The environment is torchrun's without the rendezvous (MASTER_ADDR, MASTER_PORT),
// the thread counts (unless the experiment's own environment sets them), CUDA_VISIBLE_DEVICES with
// every GPU of the trial on this node, by CUDA_DEVICE_ORDER the same numbers as the node's,
// TUNE_DEVICE_INDEX: which of those is this rank's first, and TUNE_GROUP_TIMEOUT_S.
StartWorker worker_start(const SetupExperiment& experiment, const Launch& launch,
                         std::uint32_t rank, const NodeFacts& node);

}  // namespace tune
