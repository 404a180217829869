#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "simulator/simulation.h"

namespace tune::simulator {
namespace {

constexpr std::uint64_t kSeeds = 2000;  // simulator/more_seeds runs those behind
constexpr std::uint64_t kRunTwice = 250;

std::string told(std::uint64_t seed, const Violation& violation) {
  return fmt::format("{}: {}\n  replay it with: bin/tune_simulate --seed {} --trace",
                     violation.invariant, violation.what, seed);
}

TEST_CASE("2,000 experiments keep every promise, whatever happens around them") {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Verdict verdict = simulate({.seed = seed});
    tally.add(verdict.tally);
    if (verdict.violation) FAIL_CHECK(told(seed, *verdict.violation));
  }
  // The runs were not idle: everything that is to be survived was met often.
  CHECK(tally.turns > 50 * kSeeds);
  CHECK(tally.launches > 10 * kSeeds);
  CHECK(tally.results > 30 * kSeeds);
  CHECK(tally.checkpoints > 10 * kSeeds);
  CHECK(tally.stale_events > kSeeds / 5);
  for (const Tallied& one : kTallied) {
    CAPTURE(one.what);
    CHECK(tally.*one.count > 10);
  }
}

TEST_CASE("the same seed gives the same journal, byte for byte") {
  for (std::uint64_t seed = 1; seed <= kRunTwice; ++seed) {
    const Verdict once = simulate({.seed = seed});
    const Verdict again = simulate({.seed = seed});
    CAPTURE(seed);
    REQUIRE(!once.journal.empty());
    CHECK(once.events == again.events);
    CHECK(once.journal == again.journal);
  }
}

TEST_CASE("another seed gives another journal") {
  CHECK(simulate({.seed = 1}).journal != simulate({.seed = 2}).journal);
}

}  // namespace
}  // namespace tune::simulator
