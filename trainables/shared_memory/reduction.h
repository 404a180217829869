// Sums, products and so on of the values of several ranks, in the order of the ranks: the first
// with the second, their result with the third ..., so that the result does not depend on where, in
// which pieces or when it is computed. Half-precision values are summed up in floats and rounded
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tune::shared_memory {

enum class Type : std::uint8_t {
  kFloat,
  kDouble,
  kHalf,
  kBFloat16,
  kInt8,
  kUint8,
  kInt16,
  kInt32,
  kInt64,
  kBool
};

// Sum, or, for bools, whether any; product, or whether all. Least and greatest of floating-point
// values: not a number as soon as one is none. Bits are of whole numbers and bools.
enum class Operator : std::uint8_t { kSum, kMean, kProduct, kMin, kMax, kAnd, kOr, kXor };

std::size_t size_of(Type type);
bool is_floating(Type type);
// Means are of floating-point values, bits of the others.
bool is_defined(Operator reduction, Type type);

// Reduces `bytes` bytes, whole values, of each of the parts, at least one, into `to`, which may be
// one of the parts.
void reduce(Operator reduction, Type type, const std::vector<const char*>& parts, char* to,
            std::size_t bytes);

}  // namespace tune::shared_memory
