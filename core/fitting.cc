#include "core/fitting.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

RankShare share_of(const ResourceRequest& request) {
  if (request.gpu_units == 0) return {};
  const std::int64_t each = request.gpu_units / request.ranks;
  TUNE_CHECK(each > 0);
  if (each < kUnit) return {each, 1};
  return {kUnit, each / kUnit};
}

namespace {

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

NodeRoom empty_room(const NodeResources& resources) {
  NodeRoom node;
  node.total = resources;
  node.free_cpu_units = resources.cpu_units;
  node.free_memory_bytes = resources.memory_bytes;
  node.free_gpu_units.assign(resources.gpus.size(), kUnit);
  return node;
}

std::optional<Fit> fit_on(const NodeRoom& node, const ResourceRequest& request) {
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

std::string why_never(const std::vector<const NodeResources*>& nodes,
                      const ResourceRequest& request) {
  if (nodes.empty()) return "a trial needs a node, and there is none";
  std::int64_t cpu_units = 0;
  std::int64_t gpus = 0;
  std::int64_t memory_bytes = 0;
  for (const NodeResources* node : nodes) {
    if (fit_on(empty_room(*node), request)) return {};
    cpu_units = std::max(cpu_units, node->cpu_units);
    gpus = std::max(gpus, static_cast<std::int64_t>(node->gpus.size()));
    memory_bytes = std::max(memory_bytes, node->memory_bytes);
  }
  const std::string who =
      request.ranks > 1 ? fmt::format("{} ranks need", request.ranks) : "a trial needs";
  const char* has = nodes.size() > 1 ? "the largest node has" : "the node has";
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

std::string why_never_on(const NodeResources& node, const ResourceRequest& request) {
  const std::string never = why_never({&node}, request);
  if (never.empty()) return {};
  return never + ": " + remedy_on(node, request);
}

}  // namespace tune
