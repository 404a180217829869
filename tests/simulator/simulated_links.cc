#include "simulator/simulated_links.h"

#include <algorithm>
#include <iterator>

namespace tune::simulator {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::vector<std::string> SimulatedLinks::listen(Identity lead, std::uint64_t attempt,
                                                std::uint32_t others) {
  std::vector<std::string> addresses;
  for (std::uint32_t node = 1; node <= others; ++node) {
    OneLink& link = links_[++last_];
    link.attempt = attempt;
    link.node = node;
    link.ends[0] = lead;
    addresses.push_back(std::to_string(last_));
  }
  return addresses;
}

// Where nobody listens any more, nothing comes of it.
void SimulatedLinks::connect(Identity node, const std::string& address) {
  const auto link = links_.find(std::stoull(address));
  if (link == links_.end() || link->second.ends[1] != 0) return;
  link->second.ends[1] = node;
}

SimulatedLinks::Id SimulatedLinks::find(Identity agent, std::uint64_t attempt,
                                        std::uint32_t node) const {
  for (const auto& [id, link] : links_) {
    if (link.attempt != attempt) continue;
    if (node == 0 ? link.ends[1] == agent : link.ends[0] == agent && link.node == node) return id;
  }
  return 0;
}

void SimulatedLinks::send(Identity from, std::uint64_t attempt, std::uint32_t node,
                          std::string frame) {
  const Id id = find(from, attempt, node);
  if (id == 0) return;
  const int end = node == 0 ? 0 : 1;
  arrive(id, end, [this, end, frame = std::move(frame)](OneLink& link) {
    ends_.hear(link.ends[end], link.attempt, end == 0 ? link.node : 0, frame);
  });
}

void SimulatedLinks::arrive(Id id, int end, std::function<void(OneLink&)> what) {
  OneLink& link = links_.at(id);
  Time at = world_.queue.now() + world_.about(world_.scenario.network_delay);
  at = std::max({at, link.last_arrival[end], link.held_until});
  link.last_arrival[end] = at;
  world_.queue.after(at - world_.queue.now(), life_, [this, id, end, what = std::move(what)] {
    const auto found = links_.find(id);
    if (found != links_.end() && found->second.ends[end] != 0) what(found->second);
  });
}

// What was sent before still arrives, and then the break.
void SimulatedLinks::close(Identity agent, std::uint64_t attempt) {
  for (auto& [id, link] : links_) {
    for (const int end : {0, 1}) {
      if (link.attempt != attempt || link.ends[end] != agent) continue;
      link.ends[end] = 0;
      arrive(id, 1 - end, [this, end](OneLink& one) {
        const Identity other = std::exchange(one.ends[1 - end], 0);
        ends_.broken(other, one.attempt, end == 1 ? one.node : 0);
      });
    }
  }
  std::erase_if(links_, [](const auto& link) {
    return link.second.ends[0] == 0 && link.second.ends[1] == 0;
  });
}

void SimulatedLinks::agent_died(Identity agent,
                                const std::function<bool(std::uint64_t attempt)>& had_ranks) {
  std::vector<std::pair<Id, bool>> broken;
  for (auto& [id, link] : links_) {
    for (Identity& end : link.ends) {
      if (end != agent) continue;
      end = 0;
      broken.emplace_back(id, had_ranks(link.attempt));
    }
  }
  for (const auto& [id, with_echo] : broken) break_link(id, with_echo);
}

void SimulatedLinks::break_link(Id id, bool with_echo) {
  OneLink& link = links_.at(id);
  const Time told = world_.about(world_.chance(500'000) ? microseconds(200) : milliseconds(4));
  if (with_echo) {
    world_.lost_a_node.try_emplace(link.attempt, world_.queue.now());
    ++world_.tally.nodes_of_groups_lost;
    for (const Identity end : link.ends) {
      if (end == 0 || !world_.chance(500'000)) continue;
      world_.queue.after(world_.about(milliseconds(1)), life_,
                         [this, end, attempt = link.attempt] { ends_.echo(end, attempt); });
    }
  }
  // Words that were under way come first, or never.
  for (const int end : {0, 1}) {
    if (link.ends[end] == 0) continue;
    link.last_arrival[end] = std::max(link.last_arrival[end], world_.queue.now() + told);
    arrive(id, end, [this, end](OneLink& one) {
      const Identity here = std::exchange(one.ends[end], 0);
      ends_.broken(here, one.attempt, end == 0 ? one.node : 0);
    });
  }
}

void SimulatedLinks::hold_up(Identity agent, Time until) {
  for (auto& [id, link] : links_) {
    if (link.ends[0] != agent && link.ends[1] != agent) continue;
    link.held_until = std::max(link.held_until, until);
    world_.held_up.insert(link.attempt);
    ++world_.tally.links_held_up;
  }
}

std::vector<SimulatedLinks::Id> SimulatedLinks::whole() const {
  std::vector<Id> whole;
  for (const auto& [id, link] : links_) {
    if (link.ends[0] != 0 && link.ends[1] != 0) whole.push_back(id);
  }
  return whole;
}

SimulatedLinks::Identity SimulatedLinks::any_end() {
  const std::vector<Id> all = whole();
  if (all.empty()) return 0;
  const auto chosen = world_.random.integer(0, 2 * static_cast<std::int64_t>(all.size()));
  return links_.at(all[static_cast<std::size_t>(chosen / 2)]).ends[chosen % 2];
}

void SimulatedLinks::break_one() {
  const std::vector<Id> all = whole();
  if (all.empty()) return;
  const auto chosen = world_.random.integer(0, static_cast<std::int64_t>(all.size()));
  world_.trace("world", [] { return "the link between two agents breaks"; });
  const Id id = all[static_cast<std::size_t>(chosen)];
  const OneLink& link = links_.at(id);
  // Where the ranks of one are gone, those of the other have nothing to notice.
  const auto has_ranks = [&](Identity end) { return ends_.has_ranks(end, link.attempt); };
  break_link(id, has_ranks(link.ends[0]) && has_ranks(link.ends[1]));
}

}  // namespace tune::simulator
