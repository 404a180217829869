#include "tune/placement.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

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
  TUNE_CHECK(each > 0);
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

std::string number(std::int64_t units) {
  return fmt::format("{}", static_cast<double>(units) / static_cast<double>(kUnit));
}

std::string amount(std::int64_t units, const char* what) {
  return fmt::format("{} {}{}", number(units), what, units == kUnit ? "" : "s");
}

std::string memory(std::int64_t bytes) {
  const std::pair<const char*, double> units[] = {
      {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}};
  for (const auto& [unit, size] : units) {
    const double many = static_cast<double>(bytes) / size;
    if (many >= 1) return fmt::format("{:.6g} {}", many, unit);
  }
  return fmt::format("{} bytes", bytes);
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

void Placer::open_node(AgentNumber agent) {
  const auto found = nodes_.find(agent);
  TUNE_CHECK(found != nodes_.end());
  found->second.open = true;
}

void Placer::remove_node(AgentNumber agent) {
  nodes_.erase(agent);
}

// Where on a node the request fits now; nothing when it does not.
std::optional<Placer::Fit> Placer::fit_on(const Node& node, const ResourceRequest& request) {
  if (node.free_cpu_units < request.cpu_units) return std::nullopt;
  if (node.free_memory_bytes < request.memory_bytes) return std::nullopt;
  const RankShare share = share_of(request);
  Fit fit;
  if (share.gpus == 0) return fit;
  std::vector<std::int64_t> free = node.free_gpu_units;
  for (std::int64_t i = 0; i < share.gpus * request.ranks; ++i) {
    const std::optional<std::size_t> gpu = tightest(free, share.units);
    if (!gpu) return std::nullopt;
    free[*gpu] -= share.units;
    fit.gpus.push_back(static_cast<std::uint32_t>(*gpu));
  }
  for (std::uint32_t gpu : fit.gpus) fit.room_left += free[gpu];
  return fit;
}

// The node whose GPUs it fills best; among equals the one with the fewest free GPUs, then CPUs.
std::optional<Placement> Placer::place(const ResourceRequest& request) {
  Node* best = nullptr;
  Placement placement;
  std::tuple<std::int64_t, std::int64_t, std::int64_t> best_rest;
  for (auto& [agent, node] : nodes_) {
    if (!node.open) continue;
    std::optional<Fit> fit = fit_on(node, request);
    if (!fit) continue;
    const auto& gpus = node.free_gpu_units;
    const std::tuple rest(fit->room_left, std::accumulate(gpus.begin(), gpus.end(), std::int64_t{}),
                          node.free_cpu_units);
    if (best != nullptr && rest >= best_rest) continue;
    best = &node;
    best_rest = rest;
    placement = {agent, std::move(fit->gpus)};
  }
  if (best == nullptr) return std::nullopt;
  take(*best, placement, request);
  return placement;
}

void Placer::take(Node& node, const Placement& placement, const ResourceRequest& request) {
  node.free_cpu_units -= request.cpu_units;
  node.free_memory_bytes -= request.memory_bytes;
  TUNE_CHECK(node.free_cpu_units >= 0);
  TUNE_CHECK(node.free_memory_bytes >= 0);
  const RankShare share = share_of(request);
  for (std::uint32_t gpu : placement.gpus) {
    node.free_gpu_units[gpu] -= share.units;
    TUNE_CHECK(node.free_gpu_units[gpu] >= 0);
  }
}

bool Placer::reserve(const Placement& placement, const ResourceRequest& request) {
  const auto found = nodes_.find(placement.agent);
  if (found == nodes_.end()) return false;
  const Node& node = found->second;
  const RankShare share = share_of(request);
  std::vector<std::int64_t> free = node.free_gpu_units;
  for (std::uint32_t gpu : placement.gpus) {
    if (gpu >= free.size() || (free[gpu] -= share.units) < 0) return false;
  }
  const bool fits = node.free_cpu_units >= request.cpu_units &&
                    node.free_memory_bytes >= request.memory_bytes &&
                    static_cast<std::int64_t>(placement.gpus.size()) == share.gpus * request.ranks;
  if (fits) take(found->second, placement, request);
  return fits;
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
  TUNE_CHECK(static_cast<std::int64_t>(placement.gpus.size()) == share.gpus * request.ranks);
  for (std::uint32_t gpu : placement.gpus) {
    TUNE_CHECK(gpu < node.free_gpu_units.size());
    node.free_gpu_units[gpu] += share.units;
    TUNE_CHECK(node.free_gpu_units[gpu] <= kUnit);
  }
}

std::string Placer::why_never(const ResourceRequest& request) const {
  if (nodes_.empty()) return "a trial needs a node, and there is none";
  std::int64_t cpu_units = 0;
  std::int64_t gpus = 0;
  std::int64_t memory_bytes = 0;
  for (const auto& [agent, node] : nodes_) {
    if (fit_on(empty_node(node.total), request)) return {};
    cpu_units = std::max(cpu_units, node.total.cpu_units);
    gpus = std::max(gpus, static_cast<std::int64_t>(node.total.gpus.size()));
    memory_bytes = std::max(memory_bytes, node.total.memory_bytes);
  }
  const std::string who =
      request.ranks > 1 ? fmt::format("{} ranks need", request.ranks) : "a trial needs";
  const char* has = nodes_.size() > 1 ? "the largest node has" : "the node has";
  if (request.gpu_units > gpus * kUnit) {
    return fmt::format("{} {}, {} {}", who, amount(request.gpu_units, "GPU"), has, gpus);
  }
  if (request.cpu_units > cpu_units) {
    return fmt::format("{} {}, {} {}", who, amount(request.cpu_units, "CPU"), has,
                       number(cpu_units));
  }
  if (request.memory_bytes > memory_bytes) {
    return fmt::format("{} {} of memory, {} {}", who, memory(request.memory_bytes), has,
                       memory(memory_bytes));
  }
  const RankShare share = share_of(request);
  const std::int64_t ranks_per_gpu = share.gpus > 0 ? kUnit / share.units : request.ranks;
  if (request.ranks > gpus * ranks_per_gpu && share.units < kUnit && share.gpus > 0) {
    return fmt::format("{} {} each, of which a GPU holds {}, {} {}", who,
                       amount(share.units, "GPU"), ranks_per_gpu, has, gpus);
  }
  return fmt::format("{} {}, {} and {} of memory on one node, and none has all of them", who,
                     amount(request.cpu_units, "CPU"), amount(request.gpu_units, "GPU"),
                     memory(request.memory_bytes));
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

namespace {

// Of what why_never() names: nobody can say that a node has more memory.
std::string remedy_on(const NodeResources& node, const ResourceRequest& request) {
  const auto gpus = static_cast<std::int64_t>(node.gpus.size());
  const bool has_gpus = request.gpu_units <= gpus * kUnit;
  const bool has_cpus = request.cpu_units <= node.cpu_units;
  const bool has_memory = request.memory_bytes <= node.memory_bytes;
  if (has_gpus && has_cpus && !has_memory) return "ask for less";
  return fmt::format("ask for less, or say what the node has with {}",
                     has_gpus && !has_cpus ? "--cpus" : "--gpus");
}

}  // namespace

std::string why_never_on(const NodeResources& node, const ResourceRequest& request) {
  Placer placer;
  placer.add_node(AgentNumber{0}, node);
  const std::string never = placer.why_never(request);
  if (never.empty()) return {};
  return never + ": " + remedy_on(node, request);
}

}  // namespace tune
