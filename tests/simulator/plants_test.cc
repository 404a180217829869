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
      {Plant::kForgottenRelease, 5, "reservations equal running trials"},
  };
  CHECK(std::size(rows) == static_cast<std::size_t>(Plant::kLast));
  for (const Row& row : rows) {
    const char* plant = name_of(row.plant);
    CAPTURE(plant);
    const std::optional<Caught> caught = first_caught(row.plant, row.seeds);
    REQUIRE(caught);
    CAPTURE(caught->seed);
    CHECK(caught->invariant == row.by);
    CHECK_FALSE(simulate({.seed = caught->seed}).violation);
  }
}

}  // namespace
}  // namespace tune::simulator
