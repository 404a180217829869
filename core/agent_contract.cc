#include "core/agent_contract.h"

namespace tune {

NodeResources resources_of(const AgentHello& hello) {
  NodeResources node;
  node.cpu_units = hello.cpu_units;
  node.memory_bytes = hello.memory_bytes;
  for (const GpuInfo& gpu : hello.gpus) {
    node.gpus.push_back({gpu.device, gpu.name, gpu.memory_bytes, gpu.uuid});
  }
  return node;
}

}  // namespace tune
