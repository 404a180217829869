// The message that starts a worker, worked out from the launch of its attempt. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/agent_contract.h"
#include "core/worker_contract.h"


namespace tune {

struct NodeFacts {
  std::vector<GpuInfo> gpus;
  std::string once_directory;
  std::uint32_t agent_pid = 0;
  bool relays = false;  // its checkpoints are carried: core/agent/relay_client.h, object_carrier.h
  bool owns_folder = false;  // its trials write where no other node sees it
};

// The message for one rank. Its environment is that of any rank, see core/rank_environment.h;
// add_rendezvous adds the rendezvous when its port is known. CUDA_VISIBLE_DEVICES has every GPU of
// the trial on this node; CUDA_DEVICE_ORDER makes the numbers those of the node.
// TUNE_GROUP_TIMEOUT_S and TUNE_ALONE_TIMEOUT_S are the experiment's.
StartWorker worker_start(const SetupExperiment& experiment, const Launch& launch,
                         std::uint32_t rank, const NodeFacts& node);

}  // namespace tune
