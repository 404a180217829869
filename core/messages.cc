#include "core/messages.h"

namespace tune {

bool is_failure(Outcome outcome) {
  switch (outcome) {
    case Outcome::kException:
    case Outcome::kSignal:
    case Outcome::kExit:
    case Outcome::kHung:
      return true;
    default:
      return false;
  }
}

const char* outcome_name(Outcome outcome) {
  constexpr const char* kNames[] = {"completed", "stopped", "paused", "exception",
                                    "signal",    "exit",    "hung",   "lost"};
  return kNames[static_cast<int>(outcome)];
}

NodeResources resources_of(const AgentHello& hello) {
  NodeResources node;
  node.cpu_units = hello.cpu_units;
  node.memory_bytes = hello.memory_bytes;
  for (const GpuInfo& gpu : hello.gpus) {
    node.gpus.push_back({gpu.device, gpu.name, gpu.memory_bytes});
  }
  return node;
}

}  // namespace tune
