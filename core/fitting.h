// Fitting: whether one node holds what a trial asks for, where on it, and why it never could. Pure.
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

// What of a node is not promised.
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
// The GPUs it gets, rank by rank (none when it asks for none); nothing when there are too few.
std::optional<std::vector<std::uint32_t>> choose_gpus(const NodeRoom& node,
                                                      const ResourceRequest& request);

struct Fit {
  std::vector<std::uint32_t> gpus;  // rank by rank
  std::int64_t room_left = 0;       // units that stay free on them
};
// Where on a node the request fits now, by all rules; nothing when it does not.
std::optional<Fit> fit_on(const NodeRoom& node, const ResourceRequest& request);

// Why none of these nodes could hold the request even when it is empty: "4 ranks need 4 GPUs, the
// largest node has 2". Empty when one could.
std::string why_never(const std::vector<const NodeResources*>& nodes,
                      const ResourceRequest& request);
// Why a trial can never run where this is the only node, and the remedy; empty when it can.
std::string why_never_on(const NodeResources& node, const ResourceRequest& request);

}  // namespace tune
