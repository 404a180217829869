#include "core/fitting.h"

#include <algorithm>
#include <tuple>
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

// The remedy for the shortage that why_never() names. No option raises a node's memory: the only
// remedy there is to ask for less.
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

bool has_cpus(const NodeRoom& node, const ResourceRequest& request) {
  return node.free_cpu_units >= request.cpu_units;
}

bool has_memory(const NodeRoom& node, const ResourceRequest& request) {
  return node.free_memory_bytes >= request.memory_bytes;
}

std::optional<std::vector<std::uint32_t>> choose_gpus(const NodeRoom& node,
                                                      const ResourceRequest& request) {
  const RankShare share = share_of(request);
  std::vector<std::uint32_t> gpus;
  std::vector<std::int64_t> free = node.free_gpu_units;
  for (std::int64_t i = 0; i < share.gpus * request.ranks; ++i) {
    const std::optional<std::size_t> gpu = tightest(free, share.units);
    if (!gpu) return std::nullopt;
    free[*gpu] -= share.units;
    gpus.push_back(static_cast<std::uint32_t>(*gpu));
  }
  return gpus;
}

std::optional<Fit> fit_on(const NodeRoom& node, const ResourceRequest& request) {
  if (!has_cpus(node, request) || !has_memory(node, request)) return std::nullopt;
  std::optional<std::vector<std::uint32_t>> gpus = choose_gpus(node, request);
  if (!gpus) return std::nullopt;
  Fit fit;
  fit.gpus = std::move(*gpus);
  std::vector<std::int64_t> free = node.free_gpu_units;
  const std::int64_t units = share_of(request).units;
  for (std::uint32_t gpu : fit.gpus) free[gpu] -= units;
  for (std::uint32_t gpu : fit.gpus) fit.room_left += free[gpu];
  return fit;
}

// ---- Groups over several nodes

ResourceRequest part_of(const ResourceRequest& request, int nodes) {
  if (nodes == 1) return request;
  TUNE_CHECK(nodes > 1);
  TUNE_CHECK(request.ranks % nodes == 0);
  const auto share = [nodes](std::int64_t all) { return (all + nodes - 1) / nodes; };
  ResourceRequest part = request;
  part.ranks = request.ranks / nodes;
  part.cpu_units = share(request.cpu_units);
  part.memory_bytes = share(request.memory_bytes);
  const RankShare rank = share_of(request);
  part.gpu_units = rank.units * rank.gpus * part.ranks;
  return part;
}

int nodes_for(const NodeResources& node, const ResourceRequest& request) {
  for (int nodes = 1; nodes <= request.ranks; ++nodes) {
    if (request.ranks % nodes != 0) continue;
    if (fit_on(empty_room(node), part_of(request, nodes))) return nodes;
  }
  return 0;
}

// A node with room for a trial of several ranks has room for a part of it.
bool holds_part(const NodeResources& node, const ResourceRequest& request) {
  return request.ranks > 1 && nodes_for(node, request) > 0;
}

bool is_whole(const NodeRoom& node) {
  return node.free_cpu_units == node.total.cpu_units &&
         node.free_memory_bytes == node.total.memory_bytes &&
         std::ranges::all_of(node.free_gpu_units, [](std::int64_t free) { return free == kUnit; });
}

namespace {

// Of more nodes than are needed, those with the least room are taken.
std::optional<std::vector<GroupPart>> parts_on(const std::vector<const NodeRoom*>& nodes,
                                               const ResourceRequest& part, std::size_t count) {
  using Size = std::tuple<std::size_t, std::int64_t, std::size_t>;  // GPUs, CPUs, its place
  std::vector<std::pair<Size, Fit>> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::optional<Fit> fit = fit_on(*nodes[i], part);
    const NodeResources& total = nodes[i]->total;
    if (fit) found.push_back({{total.gpus.size(), total.cpu_units, i}, std::move(*fit)});
  }
  if (found.size() < count) return std::nullopt;
  std::ranges::sort(found, {}, [](const auto& one) { return one.first; });
  std::vector<GroupPart> parts;
  for (std::size_t i = 0; i < count; ++i) {
    parts.push_back({std::get<2>(found[i].first), std::move(found[i].second)});
  }
  std::ranges::sort(parts, {}, &GroupPart::node);
  return parts;
}

}  // namespace

std::optional<std::vector<GroupPart>> spread(const std::vector<const NodeRoom*>& whole_nodes,
                                             const ResourceRequest& request) {
  const int most = static_cast<int>(
      std::min<std::size_t>(whole_nodes.size(), static_cast<std::size_t>(request.ranks)));
  for (int nodes = 2; nodes <= most; ++nodes) {
    if (request.ranks % nodes != 0) continue;
    auto parts = parts_on(whole_nodes, part_of(request, nodes), static_cast<std::size_t>(nodes));
    if (parts) return parts;
  }
  return std::nullopt;
}

// A part gets smaller with the number of nodes: those that hold one of few hold one of more. So
// what groups over few nodes leave, and there is less of it than one of these needs, takes part in
// larger groups.
std::uint64_t groups_on(const std::map<int, std::uint64_t>& nodes) {
  std::uint64_t groups = 0;
  std::uint64_t left = 0;
  for (const auto& [each, count] : nodes) {
    TUNE_CHECK(each > 0);
    left += count;
    groups += left / static_cast<std::uint64_t>(each);
    left %= static_cast<std::uint64_t>(each);
  }
  return groups;
}

// ---- Requests that never fit

namespace {

struct Largest {  // of several nodes, each by itself
  std::int64_t cpu_units = 0;
  std::int64_t gpus = 0;
  std::int64_t memory_bytes = 0;
  std::string has;  // "the node has"
};

Largest largest_of(const std::vector<const NodeResources*>& nodes) {
  Largest largest;
  largest.has = nodes.size() > 1 ? "the largest node has" : "the node has";
  for (const NodeResources* node : nodes) {
    largest.cpu_units = std::max(largest.cpu_units, node->cpu_units);
    largest.gpus = std::max(largest.gpus, static_cast<std::int64_t>(node->gpus.size()));
    largest.memory_bytes = std::max(largest.memory_bytes, node->memory_bytes);
  }
  return largest;
}

// The missing amount by each rule, worded to follow "a trial needs"; empty: not the cause.

std::string missing_gpus(const Largest& largest, const ResourceRequest& request) {
  if (request.gpu_units <= largest.gpus * kUnit) return {};
  return fmt::format("{}, {} {}", amount(request.gpu_units, "GPU"), largest.has, largest.gpus);
}

std::string missing_cpus(const Largest& largest, const ResourceRequest& request) {
  if (request.cpu_units <= largest.cpu_units) return {};
  return fmt::format("{}, {} {}", amount(request.cpu_units, "CPU"), largest.has,
                     number(largest.cpu_units));
}

std::string missing_memory(const Largest& largest, const ResourceRequest& request) {
  if (request.memory_bytes <= largest.memory_bytes) return {};
  return fmt::format("{} of memory, {} {}", memory(request.memory_bytes), largest.has,
                     memory(largest.memory_bytes));
}

// Enough GPU units are there, but a rank's share cannot span two GPUs.
std::string shares_that_do_not_pack(const Largest& largest, const ResourceRequest& request) {
  const RankShare share = share_of(request);
  if (share.gpus == 0 || share.units == kUnit) return {};
  const std::int64_t ranks_per_gpu = kUnit / share.units;
  if (request.ranks <= largest.gpus * ranks_per_gpu) return {};
  return fmt::format("{} each, of which a GPU holds {}, {} {}", amount(share.units, "GPU"),
                     ranks_per_gpu, largest.has, largest.gpus);
}

std::string all_on_one_node(const Largest&, const ResourceRequest& request) {
  return fmt::format("{}, {} and {} of memory on one node, and none has all of them",
                     amount(request.cpu_units, "CPU"), amount(request.gpu_units, "GPU"),
                     memory(request.memory_bytes));
}

}  // namespace

std::uint64_t trials_that_fit(const NodeResources& node, const ResourceRequest& request) {
  if (!fit_on(empty_room(node), request)) return 0;
  std::int64_t most = 1000;
  const auto limit = [&](std::int64_t has, std::int64_t wants) {
    if (wants > 0) most = std::min(most, has / wants);
  };
  limit(node.cpu_units, request.cpu_units);
  limit(node.memory_bytes, request.memory_bytes);
  const RankShare share = share_of(request);
  if (share.gpus > 0) {
    const std::int64_t on_each =
        share.units > 0 ? std::max<std::int64_t>(kUnit / share.units, 1) : 1;
    const auto ranks = static_cast<std::int64_t>(node.gpus.size()) * on_each / share.gpus;
    limit(ranks, request.ranks);
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(most, 1));
}

std::string why_never(const std::vector<const NodeResources*>& nodes,
                      const ResourceRequest& request) {
  if (nodes.empty()) return "a trial needs a node, and there is none";
  for (const NodeResources* node : nodes) {
    if (fit_on(empty_room(*node), request)) return {};
  }
  const Largest largest = largest_of(nodes);
  const std::string needs =
      request.ranks > 1 ? fmt::format("{} ranks need", request.ranks) : "a trial needs";
  for (const auto shortage :
       {missing_gpus, missing_cpus, missing_memory, shares_that_do_not_pack, all_on_one_node}) {
    const std::string what = shortage(largest, request);
    if (!what.empty()) return needs + " " + what;
  }
  return {};
}

std::string why_never_on(const NodeResources& node, const ResourceRequest& request) {
  const std::string never = why_never({&node}, request);
  if (never.empty()) return {};
  return never + ": " + remedy_on(node, request);
}

}  // namespace tune
