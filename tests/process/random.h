// Moments that random tests draw. Their number and seed can be set:
//
//   TUNE_TEST_KILLS=1000   in place of the 50 of the usual run
//   TUNE_TEST_SEED=7       of an earlier run; drawn anew by default, and printed
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace tune {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

inline std::uint64_t test_seed() {
  static const std::uint64_t seed = from_environment("TUNE_TEST_SEED", std::random_device()());
  return seed;
}

// This share of all moments, at least one. Prints the seed.
inline int share_of_kills(int usual) {
  constexpr std::uint64_t kUsual = 50;
  const std::uint64_t all = from_environment("TUNE_TEST_KILLS", kUsual);
  const int share = std::max(1, static_cast<int>(all * static_cast<std::uint64_t>(usual) / kUsual));
  MESSAGE(share << " random moments, TUNE_TEST_SEED=" << test_seed());
  return share;
}

}  // namespace tune
