// Reductions of all types against the same computed value by value.
#include "trainables/shared_memory/reduction.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tune::shared_memory {
namespace {

template <class T>
std::vector<T> reduced(Operator reduction, Type type, const std::vector<std::vector<T>>& parts) {
  std::vector<const char*> given;
  for (const auto& part : parts) given.push_back(reinterpret_cast<const char*>(part.data()));
  std::vector<T> result(parts[0].size());
  reduce(reduction, type, given, reinterpret_cast<char*>(result.data()), result.size() * sizeof(T));
  return result;
}

template <class T>
T expected(Operator reduction, T a, T b) {
  switch (reduction) {
    case Operator::kProduct:
      return static_cast<T>(a * b);
    case Operator::kMin:
      return std::min(a, b);
    case Operator::kMax:
      return std::max(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
void compare(Type type) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> values(-5, 5);
  for (const std::size_t ranks : {1u, 2u, 3u, 5u}) {
    for (const std::size_t count : {0u, 1u, 7u, 1024u, 3001u}) {
      std::vector<std::vector<T>> parts(ranks);
      for (auto& part : parts) {
        for (std::size_t i = 0; i < count; ++i) part.push_back(static_cast<T>(values(random)));
      }
      for (const Operator reduction :
           {Operator::kSum, Operator::kProduct, Operator::kMin, Operator::kMax}) {
        std::vector<T> wanted = parts[0];
        for (std::size_t rank = 1; rank < ranks; ++rank) {
          for (std::size_t i = 0; i < count; ++i) {
            wanted[i] = expected(reduction, wanted[i], parts[rank][i]);
          }
        }
        CHECK(reduced(reduction, type, parts) == wanted);
      }
    }
  }
}

TEST_CASE("sums, products, least and greatest of every type of number") {
  CHECK(size_of(Type::kInt16) == sizeof(std::int16_t));
  compare<float>(Type::kFloat);
  compare<double>(Type::kDouble);
  compare<std::int8_t>(Type::kInt8);
  compare<std::uint8_t>(Type::kUint8);
  compare<std::int16_t>(Type::kInt16);
  compare<std::int32_t>(Type::kInt32);
  compare<std::int64_t>(Type::kInt64);
}

TEST_CASE("bits, and bools that are any value but 0") {
  using Bytes = std::vector<std::uint8_t>;
  const std::vector<Bytes> bits = {{0b1100, 1}, {0b1010, 1}, {0b1111, 1}};
  CHECK(reduced(Operator::kAnd, Type::kUint8, bits) == Bytes{0b1000, 1});
  CHECK(reduced(Operator::kOr, Type::kUint8, bits) == Bytes{0b1111, 1});
  CHECK(reduced(Operator::kXor, Type::kUint8, bits) == Bytes{0b1001, 1});
  const std::vector<Bytes> bools = {{0, 1, 0}, {0, 2, 1}};
  CHECK(reduced(Operator::kSum, Type::kBool, bools) == Bytes{0, 1, 1});
  CHECK(reduced(Operator::kMax, Type::kBool, bools) == Bytes{0, 1, 1});
  CHECK(reduced(Operator::kProduct, Type::kBool, bools) == Bytes{0, 1, 0});
  CHECK(reduced(Operator::kXor, Type::kBool, bools) == Bytes{0, 0, 1});
  CHECK_FALSE(is_defined(Operator::kMean, Type::kInt32));
  CHECK_FALSE(is_defined(Operator::kAnd, Type::kFloat));
  CHECK_FALSE(is_defined(Operator::kMean, Type::kBool));
  CHECK(is_defined(Operator::kXor, Type::kBool));
}

TEST_CASE("a mean is a sum divided once; what is not a number stays none") {
  using Values = std::vector<double>;
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(reduced(Operator::kMean, Type::kDouble, std::vector<Values>{{1}, {2}, {6}}) == Values{3});
  for (const Operator reduction : {Operator::kMin, Operator::kMax, Operator::kSum}) {
    for (const auto& parts :
         {std::vector<Values>{{none}, {1}}, {{1}, {none}}, {{2}, {none}, {1}}}) {
      CHECK(std::isnan(reduced(reduction, Type::kDouble, parts)[0]));
    }
  }
}

TEST_CASE("a result may take a part's place") {
  std::vector<float> a(1000, 1), b(1000, 2), c(1000, 4);
  const auto bytes = [](std::vector<float>& values) {
    return reinterpret_cast<char*>(values.data());
  };
  reduce(Operator::kSum, Type::kFloat, {bytes(a), bytes(b)}, bytes(b), 4000);
  CHECK(b == std::vector<float>(1000, 3));
  reduce(Operator::kSum, Type::kFloat, {bytes(a), bytes(b), bytes(c)}, bytes(c), 4000);
  CHECK(c == std::vector<float>(1000, 8));
}

// The value that the bits stand for, by the definition.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST_CASE("every half stays itself, and sums of halves are rounded to the nearest") {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  // A zero of the same sign changes nothing, -0 + 0 is 0.
  std::vector<std::uint16_t> zeros(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) zeros[i] = all[i] & 0x8000;
  const auto same = reduced(Operator::kSum, Type::kHalf, std::vector{all, zeros});
  std::mt19937 random(3);
  std::vector<std::uint16_t> others(all.size());
  for (auto& one : others) one = static_cast<std::uint16_t>(random());
  const auto sums = reduced(Operator::kSum, Type::kHalf, std::vector{all, others});
  int wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::isnan(half_value(all[i]))) {
      wrong += std::isnan(half_value(same[i])) ? 0 : 1;
      continue;
    }
    wrong += same[i] == all[i] ? 0 : 1;
    const double exact = half_value(all[i]) + half_value(others[i]);
    const double sum = half_value(sums[i]);
    if (std::isnan(exact) || std::isinf(exact)) {
      wrong += std::isnan(exact) == std::isnan(sum) && (std::isnan(sum) || sum == exact) ? 0 : 1;
      continue;
    }
    if (std::isinf(sum)) {  // from the middle between the greatest half and the next step on
      wrong += std::abs(exact) >= 65520 ? 0 : 1;
      continue;
    }
    // No neighbour is nearer.
    const double error = std::abs(sum - exact);
    const auto towards = [&](int step) {
      return half_value(
          static_cast<std::uint16_t>((sums[i] & 0x8000) | (((sums[i] & 0x7fff) + step) & 0x7fff)));
    };
    const bool is_zero = (sums[i] & 0x7fff) == 0;
    if (!is_zero && std::abs(towards(-1) - exact) < error) ++wrong;
    if (!std::isinf(towards(1)) && std::abs(towards(1) - exact) < error) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("short floats are summed up in floats and rounded once, bfloat16 to even") {
  // 256 + 1 + 1: one by one in bfloat16 (8 digits) both ones are lost.
  using Shorts = std::vector<std::uint16_t>;
  const std::uint16_t b256 = 0x4380, b1 = 0x3f80, b258 = 0x4381;
  CHECK(reduced(Operator::kSum, Type::kBFloat16, std::vector<Shorts>{{b256}, {b1}, {b1}}) ==
        Shorts{b258});
  CHECK(reduced(Operator::kSum, Type::kBFloat16, std::vector<Shorts>{{b256}, {b1}}) ==
        Shorts{b256});  // 257 lies in the middle: the even one
  // 2048 + 1 + 1 in halves.
  CHECK(reduced(Operator::kSum, Type::kHalf, std::vector<Shorts>{{0x6800}, {0x3c00}, {0x3c00}}) ==
        Shorts{0x6801});
}

}  // namespace
}  // namespace tune::shared_memory
