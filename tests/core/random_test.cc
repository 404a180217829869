#include "core/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tune {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Known answers of Random123 (kat_vectors, "philox4x32 10").
TEST_CASE("philox gives the published answers") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

std::vector<std::uint64_t> first(RandomStream stream, int count) {
  std::vector<std::uint64_t> words;
  for (int i = 0; i < count; ++i) words.push_back(stream.next());
  return words;
}

TEST_CASE("a stream depends on seed, purpose and number, and on nothing else") {
  const auto words = first(RandomStream(1, "config/lr", 5), 100);
  RandomStream other(2, "x", 0);
  other.next();
  CHECK(first(RandomStream(1, "config/lr", 5), 100) == words);
  CHECK(first(RandomStream(2, "config/lr", 5), 100) != words);
  CHECK(first(RandomStream(1, "config/lr", 6), 100) != words);
  CHECK(first(RandomStream(1, "config/l", 5), 100) != words);
}

TEST_CASE("streams of near seeds, purposes and numbers share no word and do not correlate") {
  std::set<std::uint64_t> seen;
  std::size_t drawn = 0;
  for (const std::uint64_t seed : {0ULL, 1ULL, 2ULL, 1ULL << 32, ~0ULL}) {
    for (const char* purpose : {"", "a", "b", "config/lr", "config/lr2"}) {
      for (const std::uint64_t number : {0ULL, 1ULL, 2ULL, 1ULL << 32, (1ULL << 32) + 1}) {
        for (const std::uint64_t word : first(RandomStream(seed, purpose, number), 64)) {
          seen.insert(word);
          ++drawn;
        }
      }
    }
  }
  CHECK(seen.size() == drawn);  // 8000 of 2^64: two alike have odds of 2e-12

  // Correlation of the first draws of neighbouring streams: sd is 1 / sqrt(n) = 0.01.
  double product = 0;
  constexpr int kStreams = 10000;
  for (std::uint64_t i = 0; i < kStreams; ++i) {
    product +=
        (RandomStream(1, "x", i).uniform() - 0.5) * (RandomStream(1, "x", i + 1).uniform() - 0.5);
  }
  CHECK(std::abs(product / kStreams * 12) < 0.04);
}

TEST_CASE("uniform numbers are below one and even") {
  RandomStream random(3, "uniform", 0);
  std::array<int, 10> counts{};
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    ++counts[static_cast<std::size_t>(u * 10)];
  }
  // Each is binomial: mean 10000, sd 95.
  for (const int count : counts) CHECK(std::abs(count - kDraws / 10) < 500);
}

TEST_CASE("integers stay in their range, ends of the type included, and are even") {
  RandomStream random(4, "integer", 0);
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < 70000; ++i) ++counts[random.integer(-3, 4)];
  CHECK(counts.size() == 7);
  for (const auto& [value, count] : counts) CHECK(std::abs(count - 10000) < 500);  // sd 93
  CHECK(counts.begin()->first == -3);
  CHECK(random.integer(5, 6) == 5);
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t value = random.integer(INT64_MIN, INT64_MAX);
    negative |= value < 0;
    positive |= value > 0;
    CHECK(random.integer(INT64_MAX - 1, INT64_MAX) == INT64_MAX - 1);
  }
  CHECK(negative);
  CHECK(positive);
}

TEST_CASE("normal numbers have mean 0, standard deviation 1 and thin tails") {
  RandomStream random(5, "normal", 0);
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    REQUIRE(std::isfinite(x));
    sum += x;
    squares += x * x;
    beyond_two += std::abs(x) > 2;
  }
  CHECK(std::abs(sum / kDraws) < 0.015);                // sd 0.0032
  CHECK(std::abs(squares / kDraws - 1) < 0.02);         // sd 0.0045
  CHECK(std::abs(beyond_two - 0.0455 * kDraws) < 330);  // sd 66
}

TEST_CASE("the hash tells texts apart and is the same everywhere") {
  std::set<std::uint64_t> hashes;
  for (int i = 0; i < 10000; ++i) hashes.insert(hash64(std::to_string(i)));
  CHECK(hashes.size() == 10000);
  CHECK(hash64("a") != hash64("a", 1));
  CHECK(hash64("") == hash64({}));
}

}  // namespace
}  // namespace tune
