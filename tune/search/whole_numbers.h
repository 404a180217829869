// Arithmetic on whole numbers that neither overflows nor rounds. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tune {

// a / b rounded down; b > 0.
inline std::int64_t floor_division(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0);
}
// a * b, or `bound` when that is less.
inline std::uint64_t bounded_product(std::uint64_t a, std::uint64_t b, std::uint64_t bound) {
  return b != 0 && a > bound / b ? bound : std::min(a * b, bound);
}

}  // namespace tune
