// Fitting: whether one node can hold a trial's request, where on the node, and if not, why. Pure.
//
// All ranks of a trial are placed together, on one node, or not at all. A rank's whole GPUs are
// entirely free ones; a share below one goes to the GPU with the least room that still holds it.
// Requests are those of to_request().
#pragma once

#include <cstdint>
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
