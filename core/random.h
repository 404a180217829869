// Random streams derived by counter: the stream for (seed, purpose, number) never depends on what
// else was drawn or in which order events came. Generator: Philox4x32-10 (Salmon et al., SC 2011).
// Transforms are our own, so the same seed gives the same bits with one build on one machine type.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tune {

// The bare generator: one block of four words.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t number);

  std::uint64_t next();                                        // 64 uniform bits
  double uniform();                                            // [0, 1), 53 bits
  std::int64_t integer(std::int64_t low, std::int64_t high);   // [low, high), unbiased; low < high
  double normal();                                             // mean 0, standard deviation 1

 private:
  void refill();
  std::array<std::uint32_t, 2> key_{};
  std::array<std::uint32_t, 4> counter_{};
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

std::uint64_t hash64(std::string_view text, std::uint64_t start = 0xcbf29ce484222325ULL);

}  // namespace tune
