#include "trainables/shared_memory/reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/error.h"

namespace tune::shared_memory {
namespace {

// Values at a time: what is between the ranks' values stays in the first cache.
constexpr std::size_t kBatch = 1024;

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t value;
};

float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// To the nearest, to even ones.
BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return {static_cast<std::uint16_t>(value != value ? 0x7fc0u : rounded)};
}

// Without branches: an exponent's shift by multiplication, which also makes small ones normal.
float to_float(Half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t rest = value.bits & 0x7fffu;
  constexpr float kShift = 5.192296858534828e+33f;  // 2 to the power of 112
  const float shifted = std::bit_cast<float>(rest << 13) * kShift;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(shifted);
  return std::bit_cast<float>(sign | (rest >= 0x7c00u ? bits | 0x7f800000u : bits));
}

Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t rest = bits & 0x7fffffffu;
  std::uint32_t result;
  if (rest > 0x7f800000u) {
    result = 0x7e00u;
  } else if (rest >= 0x477ff000u) {
    result = 0x7c00u;
  } else if (rest < 0x38800000u) {  // below the least normal one: the sum rounds
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  } else {
    result = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | result)};
}

// The arithmetic of values of a type.
template <class T>
struct Computed {
  using Value = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
template <>
struct Computed<Half> {
  using Value = float;
  static float load(Half value) { return to_float(value); }
  static Half store(float value) { return to_half(value); }
};
template <>
struct Computed<BFloat16> {
  using Value = float;
  static float load(BFloat16 value) { return to_float(value); }
  static BFloat16 store(float value) { return to_bfloat16(value); }
};
template <>
struct Computed<Bool> {
  using Value = std::uint8_t;
  static std::uint8_t load(Bool value) { return value.value != 0 ? 1 : 0; }
  static Bool store(std::uint8_t value) { return {value}; }
};

// Whole numbers wrap around, as in LibTorch.
struct Add {
  template <class V>
  V operator()(V a, V b) const {
    if constexpr (std::is_integral_v<V>) {
      using Unsigned = std::make_unsigned_t<V>;
      return static_cast<V>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};
struct Multiply {
  template <class V>
  V operator()(V a, V b) const {
    if constexpr (std::is_integral_v<V>) {
      // Not as ints: the product of two 16-bit values would overflow one.
      return static_cast<V>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct Least {
  template <class V>
  V operator()(V a, V b) const {
    return b < a || b != b ? b : a;
  }
};
struct Greatest {
  template <class V>
  V operator()(V a, V b) const {
    return b > a || b != b ? b : a;
  }
};
struct And {
  template <class V>
  V operator()(V a, V b) const {
    return static_cast<V>(a & b);
  }
};
struct Or {
  template <class V>
  V operator()(V a, V b) const {
    return static_cast<V>(a | b);
  }
};
struct Xor {
  template <class V>
  V operator()(V a, V b) const {
    return static_cast<V>(a ^ b);
  }
};

// Tensors lie at multiples of their values' size, but a user's own memory may not.
template <class T>
T at(const char* values, std::size_t i) {
  T value;
  std::memcpy(&value, values + i * sizeof(T), sizeof(T));
  return value;
}

template <class T, class F>
void reduce_batch(const std::vector<const char*>& parts, std::size_t first, std::size_t count,
                  bool is_mean, char* to) {
  using V = typename Computed<T>::Value;
  std::array<V, kBatch> values;
  const auto batch = [&](std::size_t part) { return parts[part] + first * sizeof(T); };
  const char* a = batch(0);
  for (std::size_t i = 0; i < count; ++i) values[i] = Computed<T>::load(at<T>(a, i));
  for (std::size_t part = 1; part < parts.size(); ++part) {
    const char* b = batch(part);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = F()(values[i], Computed<T>::load(at<T>(b, i)));
    }
  }
  if constexpr (std::is_floating_point_v<V>) {
    const auto size = static_cast<V>(parts.size());
    if (is_mean) {
      for (std::size_t i = 0; i < count; ++i) values[i] /= size;
    }
  }
  char* out = to + first * sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    const T value = Computed<T>::store(values[i]);
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

// Two ranks, the usual case, without a place in between.
template <class T, class F>
void reduce_two(const char* a, const char* b, char* to, std::size_t count) {
#pragma GCC ivdep  // the result may take a part's place, value by value
  for (std::size_t i = 0; i < count; ++i) {
    const T value =
        Computed<T>::store(F()(Computed<T>::load(at<T>(a, i)), Computed<T>::load(at<T>(b, i))));
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T, class F>
void reduce_values(const std::vector<const char*>& parts, char* to, std::size_t bytes,
                   bool is_mean = false) {
  const std::size_t count = bytes / sizeof(T);
  if (parts.size() == 2 && !is_mean) return reduce_two<T, F>(parts[0], parts[1], to, count);
  for (std::size_t first = 0; first < count; first += kBatch) {
    reduce_batch<T, F>(parts, first, std::min(kBatch, count - first), is_mean, to);
  }
}

template <class T>
void reduce_numbers(Operator reduction, const std::vector<const char*>& parts, char* to,
                    std::size_t bytes) {
  constexpr bool kIsFloating = std::is_floating_point_v<typename Computed<T>::Value>;
  constexpr bool kIsBool = std::is_same_v<T, Bool>;
  using Sum = std::conditional_t<kIsBool, Or, Add>;
  using Product = std::conditional_t<kIsBool, And, Multiply>;
  switch (reduction) {
    case Operator::kSum:
      return reduce_values<T, Sum>(parts, to, bytes);
    case Operator::kMean:
      return reduce_values<T, Sum>(parts, to, bytes, true);
    case Operator::kProduct:
      return reduce_values<T, Product>(parts, to, bytes);
    case Operator::kMin:
      return reduce_values<T, Least>(parts, to, bytes);
    case Operator::kMax:
      return reduce_values<T, Greatest>(parts, to, bytes);
    default:
      break;
  }
  if constexpr (!kIsFloating) {
    if (reduction == Operator::kAnd) return reduce_values<T, And>(parts, to, bytes);
    if (reduction == Operator::kOr) return reduce_values<T, Or>(parts, to, bytes);
    if (reduction == Operator::kXor) return reduce_values<T, Xor>(parts, to, bytes);
  }
}

}  // namespace

std::size_t size_of(Type type) {
  switch (type) {
    case Type::kDouble:
    case Type::kInt64:
      return 8;
    case Type::kFloat:
    case Type::kInt32:
      return 4;
    case Type::kHalf:
    case Type::kBFloat16:
    case Type::kInt16:
      return 2;
    default:
      return 1;
  }
}

bool is_floating(Type type) {
  return type == Type::kFloat || type == Type::kDouble || type == Type::kHalf ||
         type == Type::kBFloat16;
}

bool is_defined(Operator reduction, Type type) {
  switch (reduction) {
    case Operator::kMean:
      return is_floating(type);
    case Operator::kAnd:
    case Operator::kOr:
    case Operator::kXor:
      return !is_floating(type);
    default:
      return true;
  }
}

void reduce(Operator reduction, Type type, const std::vector<const char*>& parts, char* to,
            std::size_t bytes) {
  TUNE_CHECK(is_defined(reduction, type));
  switch (type) {
    case Type::kFloat:
      return reduce_numbers<float>(reduction, parts, to, bytes);
    case Type::kDouble:
      return reduce_numbers<double>(reduction, parts, to, bytes);
    case Type::kHalf:
      return reduce_numbers<Half>(reduction, parts, to, bytes);
    case Type::kBFloat16:
      return reduce_numbers<BFloat16>(reduction, parts, to, bytes);
    case Type::kInt8:
      return reduce_numbers<std::int8_t>(reduction, parts, to, bytes);
    case Type::kUint8:
      return reduce_numbers<std::uint8_t>(reduction, parts, to, bytes);
    case Type::kInt16:
      return reduce_numbers<std::int16_t>(reduction, parts, to, bytes);
    case Type::kInt32:
      return reduce_numbers<std::int32_t>(reduction, parts, to, bytes);
    case Type::kInt64:
      return reduce_numbers<std::int64_t>(reduction, parts, to, bytes);
    case Type::kBool:
      return reduce_numbers<Bool>(reduction, parts, to, bytes);
  }
}

}  // namespace tune::shared_memory
