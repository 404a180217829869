// UsageWatch: keeps who runs on a node for its UsageLog, which works beside the agent's loop.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/agent/usage_log.h"
#include "core/platform/file_worker.h"
#include "core/resources.h"
#include "core/worker_contract.h"

namespace tune {

class UsageWatch {
 public:
  explicit UsageWatch(const std::vector<Gpu>& gpus) : gpus_(gpus) {}  // the node's

  void add(WorkerId worker, const StartWorker& start, pid_t pid, Duration now);
  void remove(WorkerId worker);
  // Has the log look when it is time to: every two seconds, and less often where that takes more
  // than one part in a hundred of a processor. One look at a time, and none at a node's first
  // attempt as it begins: what a short trial leaves would wait behind it.
  void look(Duration now, FileWorker& files);

 private:
  std::vector<Gpu> gpus_;
  std::map<WorkerId, std::pair<std::uint64_t, pid_t>> ranks_;  // and their attempt_keys
  std::map<std::uint64_t, UsedBy> attempts_;
  std::shared_ptr<UsageLog> log_ = std::make_shared<UsageLog>();  // the files' thread's
  bool looks_ = false;
  Duration next_{};
};

}  // namespace tune
