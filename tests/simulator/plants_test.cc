#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/simulation.h"

namespace tune::simulator {
namespace {

struct Caught {
  std::uint64_t seed;
  std::string invariant;
};

// Where the first broken promise is found in the seeds 1 .. `seeds`.
std::optional<Caught> first_caught(Plant plant, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Verdict verdict = simulate({.seed = seed, .plant = plant});
    if (verdict.violation) return Caught{seed, verdict.violation->invariant};
  }
  return std::nullopt;
}

TEST_CASE("every bug that is planted is found, by the promise that it breaks") {
  struct Row {
    Plant plant;
    std::uint64_t seeds;  // within which it must be found
    const char* by;
  };
  const Row rows[] = {
      {Plant::kForgottenRelease, 10, "reservations equal running trials"},
      {Plant::kLateVerdict, 200, "no message of an old attempt has an effect"},
      {Plant::kAppendAfterEffect, 10, "a turn is in the journal before its effects"},
      {Plant::kLostRung, 50, "no result is lost or counted twice"},
      {Plant::kStartedTwice, 10, "a process exists only while its trial holds a reservation"},
      {Plant::kAcknowledgedBeforeAppend, 10, "what is acknowledged is in the journal"},
      {Plant::kNeededCheckpointRemoved, 10, "checkpoints that a record needs are on disk"},
      {Plant::kResultCountedTwice, 50, "no result is lost or counted twice"},
      {Plant::kHalfCheckpointTold, 50, "checkpoints that a record needs are on disk"},
      {Plant::kCheckpointBeforeResult, 20, "no result is lost or counted twice"},
      {Plant::kOldVerdictCarriedOut, 200, "a worker hears the verdicts of its own attempt"},
      {Plant::kOldDriverHeard, 2000, "no resource is promised twice"},
  };
  CHECK(std::size(rows) == static_cast<std::size_t>(Plant::kLast));
  for (const Row& row : rows) {
    const std::string plant = name_of(row.plant);
    CAPTURE(plant);
    const std::optional<Caught> caught = first_caught(row.plant, row.seeds);
    REQUIRE(caught);
    MESSAGE(plant << ": found by seed " << caught->seed << ": " << caught->invariant);
    CHECK(caught->invariant == row.by);
    // It is the plant that breaks it.
    for (std::uint64_t seed = 1; seed <= caught->seed; ++seed) {
      CHECK_FALSE(simulate({.seed = seed}).violation);
    }
  }
}

}  // namespace
}  // namespace tune::simulator
