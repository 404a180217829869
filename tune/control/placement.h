// Placer: the node and GPUs that a trial gets, and the resources that are promised. Pure.
//
// The rules of fitting are in core/fitting.h. Promising a resource twice, or releasing one that is
// not held, is a programmer's error (TUNE_CHECK).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/fitting.h"
#include "core/ids.h"
#include "core/resources.h"
#include "core/trial.h"

namespace tune {

struct Device {
  AgentNumber agent;
  std::optional<std::uint32_t> gpu;  // nothing: the node with all that it has
  friend auto operator<=>(const Device&, const Device&) = default;
};
using Devices = std::set<Device>;

class Placer {
 public:
  // Nothing is placed on it until it is opened.
  void add_node(AgentNumber agent, const NodeResources& resources);
  void open_node(AgentNumber agent);
  void close_node(AgentNumber agent);   // what it was promised stands
  void remove_node(AgentNumber agent);  // with everything it was promised
  void let_share(AgentNumber agent);    // groups with other nodes
  void keep_apart(AgentNumber agent);   // no more

  // Reserves, on none of the devices to avoid; nothing when there is no room now.
  std::optional<Placement> place(const ResourceRequest& request, const Devices& avoid = {});
  // The same on this node alone.
  std::optional<Placement> place_on(AgentNumber agent, const ResourceRequest& request,
                                    const Devices& avoid);
  // Whether place would find room if nothing was promised.
  bool could_hold(const ResourceRequest& request, const Devices& avoid) const;
  // A group over several nodes is placed where no single one has room for it, on nodes that share.
  void release(const Placement& placement, const ResourceRequest& request);  // what has not ended
  void release_part(const PlacementPart& part, const ResourceRequest& request);  // part_of()
  // Promises again what place() gave before; false, and nothing promised, when there is no room for
  // it.
  [[nodiscard]] bool reserve(const Placement& placement, const ResourceRequest& request);

  // The reason why no node could hold the request even when empty: "4 ranks need 4 GPUs, the
  // largest node has 2". An empty text when one could.
  std::string why_never(const ResourceRequest& request) const;

  std::int64_t cpu_units_used() const;
  std::int64_t cpu_units_total() const;
  std::int64_t gpu_units_used() const;
  std::int64_t gpu_units_total() const;

 private:
  struct Node {
    NodeRoom room;
    bool open = false;
    bool shares = false;
  };
  std::optional<Placement> place_on_several(const ResourceRequest& request, const Devices& avoid);
  void take(const PlacementPart& part, const ResourceRequest& request);
  bool has_room(const PlacementPart& part, const ResourceRequest& request) const;
  void changed(AgentNumber agent);

  std::map<AgentNumber, Node> nodes_;
  // The open ones that have CPUs left. Where thousands are full, only these are looked at.
  std::set<AgentNumber> with_cpus_;
};

}  // namespace tune
