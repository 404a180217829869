// State that all simulated parts share: time, chance, the disk and the events that really happened.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/random.h"
#include "simulator/event_queue.h"
#include "simulator/scenario.h"
#include "simulator/simulated_disk.h"
#include "simulator/tally.h"

namespace tune::simulator {

struct World {
  explicit World(Scenario drawn) : scenario(std::move(drawn)) {}

  Scenario scenario;
  EventQueue queue;
  RandomStream random{scenario.seed, "world", 0};
  SimulatedDisk disk;
  Tally tally;
  std::map<std::uint64_t, std::uint64_t> reported;  // by attempt_key: its last iteration
  // Messages of drivers to a running attempt, by attempt_key.
  std::map<std::uint64_t, std::set<std::string>> verdicts;
  // By attempt_key: those with a worker that spoke nonsense, and whether on a machine that does not
  // lead its group.
  std::map<std::uint64_t, bool> spoke_nonsense;
  // The attempt_keys of those whose machine was given up while they may have run on.
  std::set<std::uint64_t> given_up;
  std::map<std::uint64_t, std::uint32_t> hung;  // by attempt_key: the rank that does
  // Groups over several nodes, by attempt_key: when one lost a node on which it had ranks; and
  // attempts whose ranks an accident killed.
  std::map<std::uint64_t, Time> lost_a_node;
  std::set<std::uint64_t> killed;
  std::set<std::uint64_t> held_up;  // the attempt_keys of groups whose links carried nothing
  std::map<std::string, std::string> objects;  // of the object store, by name
  Time store_is_away_until{};
  std::uint32_t last_pid = 1000;
  std::function<void(Time)> wait;  // a process does, in a call, while everything else goes on
  bool traced = false;

  bool chance(std::uint32_t in_a_million) {
    return in_a_million > 0 && random.integer(0, 1'000'000) < in_a_million;
  }
  Time between(Time low, Time high) {
    return low >= high ? low : Time(random.integer(low.count(), high.count()));
  }
  // About this long: half of it to twice.
  Time about(Time time) { return between(time / 2, time * 2); }

  // One line of the trace; `text` makes it, only when the trace is wanted.
  template <class Text>
  void trace(const char* who, Text text) const {
    if (!traced) return;
    const double ms = std::chrono::duration<double, std::milli>(queue.now()).count();
    std::printf("%12.3f ms  %-10s %s\n", ms, who, std::string(text()).c_str());
  }
};

}  // namespace tune::simulator
