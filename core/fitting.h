// Fitting: whether one node can hold a trial's request, where on the node, and if not, why. Pure.
//
// All ranks of a trial are placed together or not at all: on one node, else in equal parts on whole
// nodes. A rank's whole GPUs are entirely free ones; a share below one goes to the GPU with the least
// room that still holds it. Requests are those of to_request().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/resources.h"

namespace tune {

// GPU units of one rank, and how many GPUs that is: whole ones, or a part of one.
struct RankShare {
  std::int64_t units = 0;  // on each of its GPUs
  std::int64_t gpus = 0;
};

RankShare share_of(const ResourceRequest& request);

// The part of a node that is not promised.
struct NodeRoom {
  NodeResources total;
  std::int64_t free_cpu_units = 0;
  std::int64_t free_memory_bytes = 0;
  std::vector<std::int64_t> free_gpu_units;  // by GPU
};
NodeRoom empty_room(const NodeResources& resources);

// ---- The rules, one function each. A node takes a trial when all of them hold.

bool has_cpus(const NodeRoom& node, const ResourceRequest& request);
bool has_memory(const NodeRoom& node, const ResourceRequest& request);
// The GPUs the request gets, rank by rank (none when it asks for none); nothing: too few are free.
std::optional<std::vector<std::uint32_t>> choose_gpus(const NodeRoom& node,
                                                      const ResourceRequest& request);

struct Fit {
  std::vector<std::uint32_t> gpus;  // rank by rank
  std::int64_t room_left = 0;       // units that stay free on them
};
// Where on a node the request fits now, by all rules; nothing when it does not.
std::optional<Fit> fit_on(const NodeRoom& node, const ResourceRequest& request);

// ---- Groups over several nodes

// The request of one part of a group that has an equal one on each of `nodes` nodes. `nodes` divides
// the ranks.
ResourceRequest part_of(const ResourceRequest& request, int nodes);
// The fewest whole nodes like this one that hold a trial in equal parts: 1 where one node holds it; 0:
// no number of them does.
int nodes_for(const NodeResources& node, const ResourceRequest& request);
// Whether an empty node could hold a part, of any size.
bool holds_part(const NodeResources& node, const ResourceRequest& request);
// Nothing of the node is promised.
bool is_whole(const NodeRoom& node);

struct GroupPart {
  std::size_t node = 0;  // its place in the list
  Fit fit;
};
// The parts of a group that no single node holds, on as few of these nodes as can be, in their order;
// nothing: they have no room for it now.
//
// The list is of whole nodes, and all parts are found at once or none. The simpler ways wait for ever
// or waste: two groups that take halves as nodes fall free each hold what the other waits for; parts
// beside other trials leave a GPU here and there, from which the next group is pieced together over
// ever more nodes.
std::optional<std::vector<GroupPart>> spread(const std::vector<const NodeRoom*>& whole_nodes,
                                             const ResourceRequest& request);

// The number of trials that whole nodes hold as groups at once, as spread() finds one after the other.
// `nodes`: how many there are, by their nodes_for(), of nodes that hold no trial by themselves.
std::uint64_t groups_on(const std::map<int, std::uint64_t>& nodes);

// The number of trials that an empty node could hold at once; of those that ask for nothing, 1000.
std::uint64_t trials_that_fit(const NodeResources& node, const ResourceRequest& request);

// The reason why none of these nodes could hold the request even when empty: "4 ranks need 4 GPUs,
// the largest node has 2". An empty text when one could.
std::string why_never(const std::vector<const NodeResources*>& nodes,
                      const ResourceRequest& request);
// The reason why a trial can never run where this is the only node, and the remedy; empty when it
// can.
std::string why_never_on(const NodeResources& node, const ResourceRequest& request);

}  // namespace tune
