#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "simulator/simulated_pool.h"

namespace tune::simulator {
namespace {

constexpr std::uint64_t kPools = 300;

TEST_CASE("300 pools keep every promise, whatever their engines and drivers do") {
  PoolTally all;
  for (std::uint64_t seed = 1; seed <= kPools; ++seed) {
    const PoolVerdict verdict = simulate_pool(seed);
    if (verdict.violation) {
      FAIL_CHECK(fmt::format("{}: {}\n  replay it with: bin/tune_simulate --pool --seed {} --trace",
                             verdict.violation->invariant, verdict.violation->what, seed));
    }
    for (const auto count :
         {&PoolTally::starts, &PoolTally::refused, &PoolTally::lost, &PoolTally::lies,
          &PoolTally::unstopped, &PoolTally::joined, &PoolTally::died, &PoolTally::drivers,
          &PoolTally::pauses, &PoolTally::given_up, &PoolTally::groups, &PoolTally::called_ended,
          &PoolTally::called_alive, &PoolTally::foreign, &PoolTally::twice, &PoolTally::wrong_ids,
          &PoolTally::silent, &PoolTally::left_out, &PoolTally::drained}) {
      all.*count += verdict.tally.*count;
    }
  }
  // The runs were not idle.
  CHECK(all.starts > 10 * kPools);
  CHECK(all.joined > 5 * kPools);
  CHECK(all.groups > 2 * kPools);
  CHECK(all.died > 2 * kPools);
  CHECK(all.drivers > 3 * kPools);
  for (const std::uint64_t count :
       {all.refused, all.lost, all.lies, all.unstopped, all.pauses, all.given_up, all.called_ended,
        all.called_alive, all.foreign, all.twice, all.wrong_ids, all.silent, all.left_out,
        all.drained}) {
    CHECK(count > kPools / 20);
  }
}

}  // namespace
}  // namespace tune::simulator
