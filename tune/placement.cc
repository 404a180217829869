#include "tune/placement.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

// GPU units of one rank, and how many GPUs that is: whole ones, or a part of one.
struct RankShare {
  std::int64_t units = 0;  // on each of its GPUs
  std::int64_t gpus = 0;
};

RankShare share_of(const ResourceRequest& request) {
  if (request.gpu_units == 0) return {};
  const std::int64_t each = request.gpu_units / request.ranks;
  if (each < kUnit) return {each, 1};
  return {kUnit, each / kUnit};
}

// The GPU with the least room that still holds the share; among equals the first.
std::optional<std::size_t> tightest(const std::vector<std::int64_t>& free, std::int64_t units) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < free.size(); ++i) {
    if (free[i] >= units && (!best || free[i] < free[*best])) best = i;
  }
  return best;
}

std::string amount(std::int64_t units, const char* what) {
  return fmt::format("{} {}{}", static_cast<double>(units) / static_cast<double>(kUnit), what,
                     units == kUnit ? "" : "s");
}

}  // namespace

Placer::Node Placer::empty_node(const NodeResources& resources) {
  Node node;
  node.total = resources;
  node.free_cpu_units = resources.cpu_units;
  node.free_memory_bytes = resources.memory_bytes;
  node.free_gpu_units.assign(resources.gpus.size(), kUnit);
  return node;
}

void Placer::add_node(AgentNumber agent, const NodeResources& resources) {
  TUNE_CHECK(nodes_.contains(agent) == false);
  nodes_.emplace(agent, empty_node(resources));
}

void Placer::remove_node(AgentNumber agent) {
  nodes_.erase(agent);
}

std::optional<Placement> Placer::place(const ResourceRequest& request) {
  for (auto& [agent, node] : nodes_) {
    if (auto gpus = place_on(node, request)) return Placement{agent, std::move(*gpus)};
  }
  return std::nullopt;
}

// Takes the resources from the node, all or none.
std::optional<std::vector<std::uint32_t>> Placer::place_on(Node& node,
                                                           const ResourceRequest& request) {
  if (node.free_cpu_units < request.cpu_units) return std::nullopt;
  if (node.free_memory_bytes < request.memory_bytes) return std::nullopt;
  const RankShare share = share_of(request);
  std::vector<std::uint32_t> chosen;
  if (share.gpus > 0) {
    std::vector<std::int64_t> free = node.free_gpu_units;
    for (std::int64_t i = 0; i < share.gpus * request.ranks; ++i) {
      const std::optional<std::size_t> gpu = tightest(free, share.units);
      if (!gpu) return std::nullopt;
      free[*gpu] -= share.units;
      chosen.push_back(static_cast<std::uint32_t>(*gpu));
    }
    node.free_gpu_units = std::move(free);
  }
  node.free_cpu_units -= request.cpu_units;
  node.free_memory_bytes -= request.memory_bytes;
  return chosen;
}

void Placer::release(const Placement& placement, const ResourceRequest& request) {
  const auto found = nodes_.find(placement.agent);
  TUNE_CHECK(found != nodes_.end());
  Node& node = found->second;
  node.free_cpu_units += request.cpu_units;
  node.free_memory_bytes += request.memory_bytes;
  TUNE_CHECK(node.free_cpu_units <= node.total.cpu_units);
  TUNE_CHECK(node.free_memory_bytes <= node.total.memory_bytes);
  const RankShare share = share_of(request);
  for (std::uint32_t gpu : placement.gpus) {
    TUNE_CHECK(gpu < node.free_gpu_units.size());
    node.free_gpu_units[gpu] += share.units;
    TUNE_CHECK(node.free_gpu_units[gpu] <= kUnit);
  }
}

std::string Placer::why_never(const ResourceRequest& request) const {
  std::int64_t cpus = 0;
  std::int64_t gpus = 0;
  std::int64_t memory = 0;
  for (const auto& [agent, node] : nodes_) {
    Node whole = empty_node(node.total);
    if (place_on(whole, request)) return {};
    cpus = std::max(cpus, node.total.cpu_units);
    gpus = std::max(gpus, kUnit * static_cast<std::int64_t>(node.total.gpus.size()));
    memory = std::max(memory, node.total.memory_bytes);
  }
  const char* node = nodes_.size() > 1 ? "the largest node has" : "the node has";
  const auto number = [](std::int64_t units) {
    return fmt::format("{}", static_cast<double>(units) / static_cast<double>(kUnit));
  };
  if (request.gpu_units > gpus) {
    return fmt::format("needs {}, {} {}", amount(request.gpu_units, "GPU"), node, number(gpus));
  }
  if (request.cpu_units > cpus) {
    return fmt::format("needs {}, {} {}", amount(request.cpu_units, "CPU"), node, number(cpus));
  }
  if (request.memory_bytes > memory) {
    return fmt::format("needs {} bytes of memory, {} {}", request.memory_bytes, node, memory);
  }
  return fmt::format("needs {} and {} in {} ranks together, and no node has both",
                     amount(request.cpu_units, "CPU"), amount(request.gpu_units, "GPU"),
                     request.ranks);
}

std::int64_t Placer::cpu_units_total() const {
  std::int64_t sum = 0;
  for (const auto& [agent, node] : nodes_) sum += node.total.cpu_units;
  return sum;
}

std::int64_t Placer::cpu_units_used() const {
  std::int64_t sum = 0;
  for (const auto& [agent, node] : nodes_) sum += node.total.cpu_units - node.free_cpu_units;
  return sum;
}

std::int64_t Placer::gpu_units_total() const {
  std::int64_t sum = 0;
  for (const auto& [agent, node] : nodes_) {
    sum += kUnit * static_cast<std::int64_t>(node.total.gpus.size());
  }
  return sum;
}

std::int64_t Placer::gpu_units_used() const {
  std::int64_t sum = gpu_units_total();
  for (const auto& [agent, node] : nodes_) {
    for (std::int64_t free : node.free_gpu_units) sum -= free;
  }
  return sum;
}

}  // namespace tune
