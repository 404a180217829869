// A group over two nodes, with two ranks on each: the agent of either, driven like MachineScript.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "agent/machine_script.h"

namespace tune::testing {

inline constexpr Duration kGroupLimit = std::chrono::seconds(60);
inline const std::uint64_t kGroupKey = attempt_key({0}, {1});

inline Launch group_launch_on(std::uint32_t node, std::uint64_t restore_iteration = 0) {
  Launch launch;
  launch.trial = {0};
  launch.attempt = {1};
  launch.ranks = 4;
  launch.cpu_units = 4 * kUnit;
  launch.hosts = {"one", "two"};
  launch.node = node;
  launch.lead = node > 0 ? "10.0.0.1:4711" : "";
  launch.restore_iteration = restore_iteration;
  return launch;
}

// The first of two nodes with two ranks on each: 1 and 2 here as processes 101 and 102.
struct LeadScript : MachineScript {
  explicit LeadScript(std::uint64_t restore_iteration = 0, Duration limit = kGroupLimit) {
    set_up({}, limit, std::chrono::seconds(600));
    machine.on_command(now, group_launch_on(0, restore_iteration));
    machine.on_group_open(now, kGroupKey, {"10.0.0.1:4711"}, {});
    spawned(1, 101);
    spawned(2, 102);
  }
  void hear(NodeWord word) { machine.on_node(now, kGroupKey, 1, {std::move(word)}); }
  void link() {
    hear(NodeLinks{kGroupKey, 1});
    hear(RankForked{2, 201});
    hear(RankForked{3, 202});
  }
  // All are set up and begin step 1.
  void begin() {
    link();
    for (const WorkerId worker : {1, 2}) done(worker);
    for (const std::uint32_t rank : {2u, 3u}) hear(FromRank{rank, PhaseDone{}});
    word(1, GroupAction::kStep);
    said();
  }
  // Signs of life of the other node, every second.
  void watch_linked_for(AgentTime time) {
    for (const AgentTime end = now + time; now < end;) {
      watch_for(std::min<AgentTime>(std::chrono::seconds(1), end - now));
      machine.on_node(now, kGroupKey, 1, {});
    }
  }
  void lose(const std::string& why = "its connection broke") {
    machine.on_link_broken(now, kGroupKey, 1, why);
  }
  AttemptEnded concluded() {
    auto ends = wanted<ConcludeAttempt>();
    REQUIRE(ends.size() == 1);
    return ends[0].ended;
  }
};

// The second of them: ranks 2 and 3 as processes 101 and 102.
struct PartScript : MachineScript {
  explicit PartScript(Duration limit = kGroupLimit) {
    set_up({}, limit, std::chrono::seconds(600));
    machine.on_command(now, group_launch_on(1));
  }
  void hear(LeadWord word) { machine.on_lead(now, kGroupKey, {std::move(word)}); }
  void start() {
    spawned(1, 101);
    spawned(2, 102);
    hear(StartRanks{});
    said();
  }
};

}  // namespace tune::testing
