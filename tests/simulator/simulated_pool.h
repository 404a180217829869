// A pool on virtual time: the real PoolMachine and PoolBook, with an engine that is slow, refuses,
// lies about what it has and loses jobs, with hosts that are bad or silent or that a user drains,
// with agents that never come or die, and with a driver that is killed between any two of its
// steps. By itself, without trials: these are a number that is wanted. The promises are checked at
// every step, and at the end, when all has calmed down, that the pool has the agents that are
// wanted, and later none.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/violation.h"

namespace tune::simulator {

struct PoolTally {
  std::uint64_t starts = 0;
  std::uint64_t refused = 0;       // starts
  std::uint64_t lost = 0;          // jobs, by the engine
  std::uint64_t lies = 0;          // lists that left jobs out
  std::uint64_t called_ended = 0;  // jobs that live
  std::uint64_t called_alive = 0;  // jobs that have ended
  std::uint64_t foreign = 0;       // jobs that nobody had asked for
  std::uint64_t twice = 0;         // jobs that a list had twice
  std::uint64_t wrong_ids = 0;
  std::uint64_t silent = 0;     // hosts that did not answer
  std::uint64_t left_out = 0;   // hosts, after starts in vain
  std::uint64_t drained = 0;    // hosts, by a user
  std::uint64_t unstopped = 0;  // stops that failed
  std::uint64_t joined = 0;
  std::uint64_t died = 0;  // agents
  std::uint64_t drivers = 0;
  std::uint64_t pauses = 0;
  std::uint64_t given_up = 0;
  std::uint64_t groups = 0;  // trials that began on several nodes
};

struct PoolVerdict {
  std::optional<Violation> violation;
  PoolTally tally;
};

PoolVerdict simulate_pool(std::uint64_t seed, bool traced = false);

}  // namespace tune::simulator
