// Placer: which node and GPUs a trial gets, and what is promised to whom. Pure.
//
// All ranks of a trial are placed together, on one node, or not at all. A rank's whole GPUs are
// entirely free ones; a share below one goes to the GPU with the least room that still holds it.
// Requests are those of to_request(). Promising something twice or releasing what is not held is a
// programmer's error (TUNE_CHECK).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/resources.h"
#include "core/trial.h"

namespace tune {

class Placer {
 public:
  // Nothing is placed on it until it is opened.
  void add_node(AgentNumber agent, const NodeResources& resources);
  void open_node(AgentNumber agent);
  void remove_node(AgentNumber agent);  // with everything it was promised

  // Reserves; nothing when there is no room now.
  std::optional<Placement> place(const ResourceRequest& request);
  void release(const Placement& placement, const ResourceRequest& request);
  // Promises again what place() gave before; false, and nothing promised, when it has no room
  // there.
  [[nodiscard]] bool reserve(const Placement& placement, const ResourceRequest& request);

  // Why no node could hold the request even when it is empty: "4 ranks need 4 GPUs, the largest
  // node has 2". Empty when one could.
  std::string why_never(const ResourceRequest& request) const;

  std::int64_t cpu_units_used() const;
  std::int64_t cpu_units_total() const;
  std::int64_t gpu_units_used() const;
  std::int64_t gpu_units_total() const;

 private:
  struct Node {
    NodeResources total;
    bool open = false;
    std::int64_t free_cpu_units = 0;
    std::int64_t free_memory_bytes = 0;
    std::vector<std::int64_t> free_gpu_units;  // by GPU
  };
  struct Fit {
    std::vector<std::uint32_t> gpus;  // rank by rank
    std::int64_t room_left = 0;       // units that stay free on them
  };
  static Node empty_node(const NodeResources& resources);
  static std::optional<Fit> fit_on(const Node& node, const ResourceRequest& request);
  static void take(Node& node, const Placement& placement, const ResourceRequest& request);

  std::map<AgentNumber, Node> nodes_;
};

// Why a trial can never run where this is the only node, and the remedy; empty when it can.
std::string why_never_on(const NodeResources& node, const ResourceRequest& request);

}  // namespace tune
