#include "tune/control/pool_room.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <vector>

#include "core/fitting.h"
#include "tune/control/controller.h"

namespace tune {

NodeShare share_of_trials(const NodeResources& node, const ResourceRequest& request) {
  const std::uint64_t places = trials_that_fit(node, request);
  return {places, places > 0 ? 0 : nodes_for(node, request)};
}

namespace {

// Not so when all that is left of it is the way of its last checkpoint.
bool has_place(const Placement& placement) {
  const bool lead_has = !placement.lead_has_ended && !placement.lead_is_free;
  return lead_has || std::ranges::any_of(placement.others,
                                         [](const PlacementPart& part) { return !part.is_free; });
}

}  // namespace

PoolScene pool_scene(const Controller& controller, const ResourceRequest& request) {
  PoolScene scene;
  scene.wanted = controller.wanted();
  const Nodes& nodes = controller.nodes();
  std::map<AgentNumber, std::uint64_t> trials;
  std::set<AgentNumber> held;
  for (const TrialNumber number : controller.running()) {
    const Placement& placement = *controller.trials()[number.value].placement;
    const std::vector<AgentNumber> agents = agents_of(placement);
    for (const AgentNumber agent : agents) ++trials[agent];
    if (has_place(placement)) ++scene.running;
    if (placement.nodes == 1 || agents.size() < placement.nodes) continue;
    if (std::ranges::any_of(agents, [&](auto agent) { return nodes.is_out(agent); })) continue;
    ++scene.groups;
    held.insert(agents.begin(), agents.end());
  }
  for (const AgentNumber agent : nodes.all()) {
    const AgentHello& hello = nodes.hello(agent);
    // Whether it takes part in groups is known when it is ready.
    const bool takes_parts = !nodes.is_ready(agent) || nodes.shares(agent);
    const NodeShare share = share_of_trials(resources_of(hello), request);
    scene.nodes.push_back({.agent = agent,
                           .allocation = controller.allocation_of(hello),
                           .places = share.places,
                           .trials = trials[agent],
                           .is_out = nodes.is_out(agent),
                           .group = takes_parts ? share.group : 0,
                           .is_held = held.contains(agent)});
  }
  return scene;
}

PoolRoom::PoolRoom(const PoolScene& scene, const std::set<AgentNumber>& leaving,
                   const NodeShare& one)
    : one_(one), places_(scene.groups) {
  std::multimap<int, AgentNumber> idle;
  for (const PoolScene::Node& node : scene.nodes) {
    if (node.is_out || node.is_held || leaving.contains(node.agent)) continue;
    places_ += node.places;
    if (node.places > 0 || node.group == 0) continue;
    // The trial there is about to go on elsewhere: a node of its group is leaving.
    ++idle_[node.group];
    if (node.trials == 0) idle.emplace(node.group, node.agent);
  }
  find_waiting(idle);
}

// Groups form as in spread(): over few nodes first.
void PoolRoom::find_waiting(const std::multimap<int, AgentNumber>& idle) {
  std::vector<AgentNumber> left;
  for (auto at = idle.begin(); at != idle.end();) {
    const int each = at->first;
    for (; at != idle.end() && at->first == each; ++at) left.push_back(at->second);
    left.erase(left.begin(), left.end() - std::ssize(left) % each);
  }
  waiting_.insert(left.begin(), left.end());
}

std::uint64_t PoolRoom::trials(std::uint64_t more) const {
  if (one_.nodes_each() <= 1) return places_ + groups_on(idle_) + more * one_.places;
  std::map<int, std::uint64_t> idle = idle_;
  idle[one_.group] += more;
  return places_ + groups_on(idle);
}

std::uint64_t PoolRoom::fewest(std::uint64_t least, std::uint64_t most,
                               std::uint64_t enough) const {
  const std::uint64_t best = std::min(enough, trials(most));
  const auto numbers = std::views::iota(least, std::max(least, most));
  return *std::ranges::partition_point(numbers, [&](auto more) { return trials(more) < best; });
}

}  // namespace tune
