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

// The place on the node where the request fits without the devices to avoid.
std::optional<Fit> fit_beside(AgentNumber agent, const NodeRoom& room,
                              const ResourceRequest& request, const Devices& avoid) {
  auto avoided = avoid.lower_bound(Device{agent, std::nullopt});
  if (avoided == avoid.end() || avoided->agent != agent) return fit_on(room, request);
  NodeRoom rest = room;
  for (; avoided != avoid.end() && avoided->agent == agent; ++avoided) {
    if (!avoided->gpu) return std::nullopt;
    rest.free_gpu_units.at(*avoided->gpu) = 0;
  }
  return fit_on(rest, request);
}

}  // namespace

bool Placer::could_hold(const ResourceRequest& request, const Devices& avoid) const {
  return std::ranges::any_of(nodes_, [&](const auto& one) {
    const auto& [agent, node] = one;
    return node.open && fit_beside(agent, empty_room(node.room.total), request, avoid);
  });
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
  if (best) take(*best, request);
  return best;
}

void Placer::take(const Placement& placement, const ResourceRequest& request) {
  NodeRoom& room = nodes_.at(placement.agent).room;
  room.free_cpu_units -= request.cpu_units;
  room.free_memory_bytes -= request.memory_bytes;
  TUNE_CHECK(room.free_cpu_units >= 0);
  TUNE_CHECK(room.free_memory_bytes >= 0);
  const RankShare share = share_of(request);
  for (std::uint32_t gpu : placement.gpus) {
    room.free_gpu_units[gpu] -= share.units;
    TUNE_CHECK(room.free_gpu_units[gpu] >= 0);
  }
  changed(placement.agent);
}

bool Placer::reserve(const Placement& placement, const ResourceRequest& request) {
  const auto found = nodes_.find(placement.agent);
  if (found == nodes_.end()) return false;
  const NodeRoom& room = found->second.room;
  const RankShare share = share_of(request);
  std::vector<std::int64_t> free = room.free_gpu_units;
  for (std::uint32_t gpu : placement.gpus) {
    if (gpu >= free.size() || (free[gpu] -= share.units) < 0) return false;
  }
  const bool fits = room.free_cpu_units >= request.cpu_units &&
                    room.free_memory_bytes >= request.memory_bytes &&
                    static_cast<std::int64_t>(placement.gpus.size()) == share.gpus * request.ranks;
  if (fits) take(placement, request);
  return fits;
}

void Placer::release(const Placement& placement, const ResourceRequest& request) {
  const auto found = nodes_.find(placement.agent);
  TUNE_CHECK(found != nodes_.end());
  NodeRoom& room = found->second.room;
  room.free_cpu_units += request.cpu_units;
  room.free_memory_bytes += request.memory_bytes;
  TUNE_CHECK(room.free_cpu_units <= room.total.cpu_units);
  TUNE_CHECK(room.free_memory_bytes <= room.total.memory_bytes);
  const RankShare share = share_of(request);
  TUNE_CHECK(static_cast<std::int64_t>(placement.gpus.size()) == share.gpus * request.ranks);
  for (std::uint32_t gpu : placement.gpus) {
    TUNE_CHECK(gpu < room.free_gpu_units.size());
    room.free_gpu_units[gpu] += share.units;
    TUNE_CHECK(room.free_gpu_units[gpu] <= kUnit);
  }
  changed(placement.agent);
}

std::string Placer::why_never(const ResourceRequest& request) const {
  std::vector<const NodeResources*> totals;
  for (const auto& [agent, node] : nodes_) totals.push_back(&node.room.total);
  return tune::why_never(totals, request);
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
