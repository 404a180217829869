#include "tune/control/placement.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace tune {

void Placer::add_node(AgentNumber agent, const NodeResources& resources) {
  TUNE_CHECK(nodes_.contains(agent) == false);
  nodes_.emplace(agent, Node{empty_room(resources)});
}

void Placer::open_node(AgentNumber agent) {
  const auto found = nodes_.find(agent);
  TUNE_CHECK(found != nodes_.end());
  found->second.open = true;
  changed(agent);
}

void Placer::close_node(AgentNumber agent) {
  const auto found = nodes_.find(agent);
  TUNE_CHECK(found != nodes_.end());
  found->second.open = false;
  changed(agent);
}

void Placer::let_share(AgentNumber agent) {
  const auto found = nodes_.find(agent);
  TUNE_CHECK(found != nodes_.end());
  found->second.shares = true;
}

void Placer::keep_apart(AgentNumber agent) {
  const auto found = nodes_.find(agent);
  TUNE_CHECK(found != nodes_.end());
  found->second.shares = false;
}

void Placer::remove_node(AgentNumber agent) {
  nodes_.erase(agent);
  with_cpus_.erase(agent);
}

void Placer::changed(AgentNumber agent) {
  const Node& node = nodes_.at(agent);
  if (node.open && node.room.free_cpu_units > 0) {
    with_cpus_.insert(agent);
  } else {
    with_cpus_.erase(agent);
  }
}

namespace {

// ---- Of several nodes that can take a trial the lowest wins, by the first of these that differs.

std::int64_t room_left_on_its_gpus(const NodeRoom&, const Fit& fit) {
  return fit.room_left;
}

std::int64_t free_gpu_units(const NodeRoom& room, const Fit&) {
  return std::accumulate(room.free_gpu_units.begin(), room.free_gpu_units.end(), std::int64_t{});
}

std::int64_t free_cpu_units(const NodeRoom& room, const Fit&) {
  return room.free_cpu_units;
}

constexpr std::array kPreferences = {room_left_on_its_gpus, free_gpu_units, free_cpu_units};
using Rest = std::array<std::int64_t, kPreferences.size()>;

Rest rest_of(const NodeRoom& room, const Fit& fit) {
  Rest rest{};
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = kPreferences[i](room, fit);
  return rest;
}

}  // namespace

namespace {

// The room of a node without the devices to avoid; nothing: it is to be avoided altogether.
std::optional<NodeRoom> room_beside(AgentNumber agent, const NodeRoom& room, const Devices& avoid) {
  NodeRoom rest = room;
  auto avoided = avoid.lower_bound(Device{agent, std::nullopt});
  for (; avoided != avoid.end() && avoided->agent == agent; ++avoided) {
    if (!avoided->gpu) return std::nullopt;
    rest.free_gpu_units.at(*avoided->gpu) = 0;
  }
  return rest;
}

std::optional<Fit> fit_beside(AgentNumber agent, const NodeRoom& room,
                              const ResourceRequest& request, const Devices& avoid) {
  const auto avoided = avoid.lower_bound(Device{agent, std::nullopt});
  if (avoided == avoid.end() || avoided->agent != agent) return fit_on(room, request);
  const std::optional<NodeRoom> rest = room_beside(agent, room, avoid);
  return rest ? fit_on(*rest, request) : std::nullopt;
}

// Of several nodes, as spread() takes them.
struct Rooms {
  std::vector<AgentNumber> agents;
  std::vector<NodeRoom> rooms;

  void add(AgentNumber agent, const NodeRoom& room, const Devices& avoid) {
    std::optional<NodeRoom> rest = room_beside(agent, room, avoid);
    if (!rest) return;
    agents.push_back(agent);
    rooms.push_back(std::move(*rest));
  }
  std::optional<std::vector<GroupPart>> spread(const ResourceRequest& request) const {
    std::vector<const NodeRoom*> all;
    for (const NodeRoom& room : rooms) all.push_back(&room);
    return tune::spread(all, request);
  }
};

// Those that have their places.
std::vector<PlacementPart> parts_of(const Placement& placement) {
  std::vector<PlacementPart> parts = placement.others;
  if (!placement.lead_has_ended) parts.push_back(placement.lead());
  std::erase_if(parts, [](const PlacementPart& part) { return part.is_free; });
  return parts;
}

}  // namespace

bool Placer::could_hold(const ResourceRequest& request, const Devices& avoid) const {
  Rooms rooms;
  for (const auto& [agent, node] : nodes_) {
    if (!node.open) continue;
    const NodeRoom empty = empty_room(node.room.total);
    if (fit_beside(agent, empty, request, avoid)) return true;
    if (node.shares && request.ranks > 1) rooms.add(agent, empty, avoid);
  }
  return rooms.spread(request).has_value();
}

// Nodes fill up one after the other, so that large trials find empty ones.
std::optional<Placement> Placer::place(const ResourceRequest& request, const Devices& avoid) {
  std::optional<Placement> best;
  Rest best_rest{};
  const auto consider = [&](AgentNumber agent, const Node& node) {
    if (!node.open) return;
    std::optional<Fit> fit = fit_beside(agent, node.room, request, avoid);
    if (!fit) return;
    const Rest rest = rest_of(node.room, *fit);
    if (best && rest >= best_rest) return;
    best_rest = rest;
    best = {agent, std::move(fit->gpus)};
  };
  if (request.cpu_units > 0) {
    for (AgentNumber agent : with_cpus_) consider(agent, nodes_.at(agent));
  } else {
    for (const auto& [agent, node] : nodes_) consider(agent, node);
  }
  if (!best && request.ranks > 1) return place_on_several(request, avoid);
  if (best) take({best->agent, best->gpus, 0}, request);
  return best;
}

std::optional<Placement> Placer::place_on(AgentNumber agent, const ResourceRequest& request,
                                          const Devices& avoid) {
  const auto node = nodes_.find(agent);
  if (node == nodes_.end() || !node->second.open) return std::nullopt;
  std::optional<Fit> fit = fit_beside(agent, node->second.room, request, avoid);
  if (!fit) return std::nullopt;
  Placement placement{agent, std::move(fit->gpus)};
  take({agent, placement.gpus, 0}, request);
  return placement;
}

std::optional<Placement> Placer::place_on_several(const ResourceRequest& request,
                                                  const Devices& avoid) {
  Rooms rooms;
  for (const auto& [agent, node] : nodes_) {
    if (node.open && node.shares && is_whole(node.room)) rooms.add(agent, node.room, avoid);
  }
  std::optional<std::vector<GroupPart>> parts = rooms.spread(request);
  if (!parts) return std::nullopt;
  Placement placement;
  placement.nodes = static_cast<std::uint32_t>(parts->size());
  const ResourceRequest each = part_of(request, static_cast<int>(parts->size()));
  for (std::uint32_t node = 0; node < placement.nodes; ++node) {
    PlacementPart part{rooms.agents[(*parts)[node].node], std::move((*parts)[node].fit.gpus), node};
    take(part, each);
    if (node == 0) {
      placement.agent = part.agent;
      placement.gpus = std::move(part.gpus);
    } else {
      placement.others.push_back(std::move(part));
    }
  }
  return placement;
}

void Placer::take(const PlacementPart& part, const ResourceRequest& request) {
  NodeRoom& room = nodes_.at(part.agent).room;
  room.free_cpu_units -= request.cpu_units;
  room.free_memory_bytes -= request.memory_bytes;
  TUNE_CHECK(room.free_cpu_units >= 0);
  TUNE_CHECK(room.free_memory_bytes >= 0);
  const RankShare share = share_of(request);
  for (std::uint32_t gpu : part.gpus) {
    room.free_gpu_units[gpu] -= share.units;
    TUNE_CHECK(room.free_gpu_units[gpu] >= 0);
  }
  changed(part.agent);
}

bool Placer::has_room(const PlacementPart& part, const ResourceRequest& request) const {
  const auto found = nodes_.find(part.agent);
  if (found == nodes_.end()) return false;
  const NodeRoom& room = found->second.room;
  const RankShare share = share_of(request);
  std::vector<std::int64_t> free = room.free_gpu_units;
  for (std::uint32_t gpu : part.gpus) {
    if (gpu >= free.size() || (free[gpu] -= share.units) < 0) return false;
  }
  return room.free_cpu_units >= request.cpu_units &&
         room.free_memory_bytes >= request.memory_bytes &&
         static_cast<std::int64_t>(part.gpus.size()) == share.gpus * request.ranks;
}

bool Placer::reserve(const Placement& placement, const ResourceRequest& request) {
  const auto nodes = static_cast<int>(placement.nodes);
  if (nodes < 1 || request.ranks % nodes != 0) return false;
  const ResourceRequest each = part_of(request, nodes);
  const std::vector<PlacementPart> parts = parts_of(placement);
  std::set<AgentNumber> agents;  // a group has one part on a node
  const bool fits = std::ranges::all_of(parts, [&](const PlacementPart& part) {
    return agents.insert(part.agent).second && has_room(part, each);
  });
  if (!fits) return false;
  for (const PlacementPart& part : parts) take(part, each);
  return true;
}

void Placer::release(const Placement& placement, const ResourceRequest& request) {
  const ResourceRequest each = part_of(request, static_cast<int>(placement.nodes));
  for (const PlacementPart& part : parts_of(placement)) release_part(part, each);
}

void Placer::release_part(const PlacementPart& part, const ResourceRequest& request) {
  const auto found = nodes_.find(part.agent);
  TUNE_CHECK(found != nodes_.end());
  NodeRoom& room = found->second.room;
  room.free_cpu_units += request.cpu_units;
  room.free_memory_bytes += request.memory_bytes;
  TUNE_CHECK(room.free_cpu_units <= room.total.cpu_units);
  TUNE_CHECK(room.free_memory_bytes <= room.total.memory_bytes);
  const RankShare share = share_of(request);
  TUNE_CHECK(static_cast<std::int64_t>(part.gpus.size()) == share.gpus * request.ranks);
  for (std::uint32_t gpu : part.gpus) {
    TUNE_CHECK(gpu < room.free_gpu_units.size());
    room.free_gpu_units[gpu] += share.units;
    TUNE_CHECK(room.free_gpu_units[gpu] <= kUnit);
  }
  changed(part.agent);
}

std::string Placer::why_never(const ResourceRequest& request) const {
  std::vector<const NodeResources*> totals;
  Rooms rooms;
  for (const auto& [agent, node] : nodes_) {
    totals.push_back(&node.room.total);
    if (node.shares && request.ranks > 1) rooms.add(agent, empty_room(node.room.total), {});
  }
  return rooms.spread(request) ? "" : tune::why_never(totals, request);
}

std::int64_t Placer::cpu_units_total() const {
  std::int64_t sum = 0;
  for (const auto& [agent, node] : nodes_) sum += node.room.total.cpu_units;
  return sum;
}

std::int64_t Placer::cpu_units_used() const {
  std::int64_t sum = 0;
  for (const auto& [agent, node] : nodes_)
    sum += node.room.total.cpu_units - node.room.free_cpu_units;
  return sum;
}

std::int64_t Placer::gpu_units_total() const {
  std::int64_t sum = 0;
  for (const auto& [agent, node] : nodes_) {
    sum += kUnit * static_cast<std::int64_t>(node.room.total.gpus.size());
  }
  return sum;
}

std::int64_t Placer::gpu_units_used() const {
  std::int64_t sum = gpu_units_total();
  for (const auto& [agent, node] : nodes_) {
    for (std::int64_t free : node.room.free_gpu_units) sum -= free;
  }
  return sum;
}

}  // namespace tune
