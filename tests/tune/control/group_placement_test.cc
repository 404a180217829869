// Groups that go over several nodes: equal parts on whole nodes, all of them at once or none.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/random.h"
#include "tune/control/placement.h"

namespace tune::group_placement {
namespace {

NodeResources node(double cpus, int gpus = 0) {
  NodeResources resources;
  resources.cpu_units = to_units(cpus);
  resources.memory_bytes = std::int64_t{64} << 30;
  for (int i = 0; i < gpus; ++i) resources.gpus.push_back({std::to_string(i), "", 0});
  return resources;
}

Placer placer_of(const std::vector<NodeResources>& nodes) {
  Placer placer;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    placer.add_node({i}, nodes[i]);
    placer.open_node({i});
    placer.let_share({i});
  }
  return placer;
}

ResourceRequest group(int ranks, double gpu = 0, double cpu = 0) {
  return to_request({.cpu = cpu > 0 ? cpu : ranks, .gpu = gpu, .ranks = ranks});
}

// The nodes that a group is placed on, the lead's first; empty: it is not.
std::vector<std::uint32_t> put(Placer& placer, const ResourceRequest& wanted,
                               const Devices& avoid = {}) {
  const std::optional<Placement> placement = placer.place(wanted, avoid);
  if (!placement) return {};
  std::vector<std::uint32_t> nodes = {placement->agent.value};
  for (const PlacementPart& part : placement->others) nodes.push_back(part.agent.value);
  CHECK(placement->nodes == nodes.size());
  return nodes;
}

using Nodes = std::vector<std::uint32_t>;

TEST_CASE("a group takes one node where one has room, else as few whole ones as hold it") {
  Placer one = placer_of({node(4), node(8)});
  CHECK(put(one, group(8)) == Nodes{1});
  CHECK(put(one, group(8)).empty());  // node 0 is half of it

  Placer two = placer_of({node(4), node(4), node(4), node(4)});
  CHECK(put(two, group(8)) == Nodes{0, 1});
  CHECK(put(two, group(8)) == Nodes{2, 3});
  CHECK(put(two, group(8)).empty());

  // Six ranks: three on each of two nodes, not four and two.
  Placer even = placer_of({node(4, 4), node(4, 4)});
  const auto placement = even.place(group(6, 6));
  REQUIRE(placement.has_value());
  CHECK(placement->gpus == Nodes{0, 1, 2});
  REQUIRE(placement->others.size() == 1);
  CHECK(placement->others[0].gpus == Nodes{0, 1, 2});
  CHECK(placement->others[0].node == 1);
  CHECK(even.gpu_units_used() == 6 * kUnit);
  CHECK(even.cpu_units_used() == 6 * kUnit);

  Placer three = placer_of({node(2), node(2), node(2)});
  CHECK(put(three, group(6)) == Nodes{0, 1, 2});
  Placer odd = placer_of({node(2), node(2), node(2)});
  CHECK(put(odd, group(5)).empty());  // only five nodes of one rank would do
}

TEST_CASE("a part takes no node beside another trial, and smaller nodes before larger ones") {
  Placer placer = placer_of({node(4), node(4), node(4)});
  CHECK(put(placer, group(1)) == Nodes{0});
  CHECK(put(placer, group(6)) == Nodes{1, 2});
  Placer sizes = placer_of({node(7), node(4), node(5)});
  CHECK(put(sizes, group(8)) == Nodes{1, 2});  // the 7 stays for others
}

TEST_CASE("nodes that do not share, are closed or are to be avoided get no part") {
  Placer placer;
  for (std::uint32_t i = 0; i < 3; ++i) {
    placer.add_node({i}, node(2, 2));
    placer.open_node({i});
  }
  CHECK(put(placer, group(4)).empty());
  CHECK_FALSE(placer.could_hold(group(4), {}));
  CHECK(placer.why_never(group(4)) == "4 ranks need 4 CPUs, the largest node has 2");
  placer.let_share({0});
  placer.let_share({1});
  placer.let_share({2});
  CHECK(placer.why_never(group(4)).empty());
  CHECK(placer.could_hold(group(4), {}));
  placer.close_node({0});
  CHECK(put(placer, group(4, 4), {{{1}, 0u}}).empty());  // a GPU of node 1
  CHECK(put(placer, group(4, 4), {{{2}, std::nullopt}}).empty());
  CHECK(put(placer, group(4, 4)) == Nodes{1, 2});
}

TEST_CASE("parts are released one by one, and reserved again as they stood") {
  Placer placer = placer_of({node(2, 2), node(2, 2)});
  const ResourceRequest wanted = group(4, 4);
  Placement placement = *placer.place(wanted);
  placer.release_part(placement.others[0], part_of(wanted, 2));
  placement.others.clear();
  CHECK(placer.cpu_units_used() == 2 * kUnit);
  CHECK(put(placer, group(2, 2)) == Nodes{1});
  CHECK(put(placer, wanted).empty());
  Placer again = placer_of({node(2, 2), node(2, 2)});
  CHECK(again.reserve(placement, wanted));
  CHECK(again.cpu_units_used() == 2 * kUnit);
  CHECK_FALSE(again.reserve(placement, wanted));
  placement.lead_has_ended = true;
  placement.others = {{AgentNumber{1}, {0, 1}, 1}};
  CHECK(again.reserve(placement, wanted));
  CHECK(again.gpu_units_used() == again.gpu_units_total());
  placement.nodes = 3;  // does not divide the ranks
  CHECK_FALSE(again.reserve(placement, wanted));
  placer.release({{0}, {0, 1}, 2}, wanted);
  CHECK(placer.gpu_units_used() == 2 * kUnit);
}

TEST_CASE("a part of a group has its share, rounded up, and the whole GPUs of its ranks") {
  const ResourceRequest part =
      part_of(to_request({.cpu = 5, .gpu = 8, .memory = 10, .ranks = 4}), 2);
  CHECK(part.ranks == 2);
  CHECK(part.cpu_units == 25'000);
  CHECK(part.gpu_units == 4 * kUnit);
  CHECK(part.memory_bytes == 5);
  CHECK(part_of(to_request({.memory = 11, .ranks = 2}), 2).memory_bytes == 6);
  CHECK(holds_part(node(2), group(8)));
  CHECK_FALSE(holds_part(node(0.5), group(8)));
  CHECK_FALSE(holds_part(node(8), group(1)));
  CHECK(nodes_for(node(8), group(8)) == 1);
  CHECK(nodes_for(node(6), group(8)) == 2);  // in equal parts
  CHECK(nodes_for(node(3), group(8)) == 4);
  CHECK(nodes_for(node(0.5), group(8)) == 0);
  CHECK(nodes_for(node(8, 4), group(8, 8)) == 2);
}

TEST_CASE("groups are counted as they are placed one after the other") {
  RandomStream random(7, "groups", 0);
  for (int trial = 0; trial < 300; ++trial) {
    const ResourceRequest wanted = group(static_cast<int>(random.integer(2, 13)));
    std::vector<NodeResources> nodes;
    std::map<int, std::uint64_t> counts;
    for (auto left = random.integer(0, 12); left > 0; --left) {
      const NodeResources one = node(static_cast<double>(random.integer(1, wanted.ranks)));
      nodes.push_back(one);
      ++counts[nodes_for(one, wanted)];
    }
    Placer placer = placer_of(nodes);
    std::uint64_t placed = 0;
    while (!put(placer, wanted).empty()) ++placed;
    CHECK(groups_on(counts) == placed);
  }
}

// Groups come and go at random; as nothing is ever held in part, room for a group is found whenever
// the nodes that it needs are free.
TEST_CASE("however groups come and go, none holds a half that another waits for") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "groups", 0);
    std::vector<NodeResources> nodes;
    const auto count = random.integer(2, 9);
    for (std::int64_t i = 0; i < count; ++i) nodes.push_back(node(2, 2));
    Placer placer = placer_of(nodes);
    const ResourceRequest wanted = group(random.integer(0, 2) == 0 ? 4 : 6, 0);
    const std::int64_t needs = wanted.ranks / 2;
    std::vector<Placement> held;
    for (int step = 0; step < 60; ++step) {
      if (!held.empty() && random.integer(0, 2) == 0) {
        const auto at = random.integer(0, std::ssize(held));
        placer.release(held[static_cast<std::size_t>(at)], wanted);
        held.erase(held.begin() + at);
      } else if (auto placement = placer.place(wanted)) {
        held.push_back(std::move(*placement));
      }
      const std::int64_t free = count - needs * std::ssize(held);
      CHECK(placer.cpu_units_used() == (count - free) * 2 * kUnit);
      auto next = placer.place(wanted);
      CHECK(next.has_value() == (free >= needs));
      if (next) placer.release(*next, wanted);
    }
  }
}

}  // namespace
}  // namespace tune::group_placement
