#include "tune/simulate/dense_kernel.h"

#include "core/each_machine.h"

namespace tune {

namespace {

constexpr std::size_t kRows = 4;  // outputs that share what is read of the source

// kWidth: the lanes of one vector. It has to be what a register holds: the compiler keeps a wider
// vector in memory, also between two additions. Two vectors side by side hide their latency.
template <std::size_t kWidth>
TUNE_INLINE void layer_by(const float* weights, const float* bias, const float* source,
                          float* target, std::size_t inputs, std::size_t outputs) {
  typedef float Vector __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));
  struct Sums {
    Vector left, right;
    TUNE_INLINE void add(float weight, const float* lanes) {
      left += weight * *reinterpret_cast<const Vector*>(lanes);
      right += weight * *reinterpret_cast<const Vector*>(lanes + kWidth);
    }
    TUNE_INLINE void put(float* lanes) const {
      *reinterpret_cast<Vector*>(lanes) = left;
      *reinterpret_cast<Vector*>(lanes + kWidth) = right;
    }
  };
  static_assert(kLanes % (2 * kWidth) == 0);
  for (std::size_t output = 0; output < outputs; output += kRows) {
    // The last rows are computed again rather than by a loop of their own.
    const std::size_t first = outputs < kRows            ? 0
                              : output + kRows > outputs ? outputs - kRows
                                                         : output;
    const std::size_t last = outputs - 1;
    const std::size_t rows[kRows] = {first, first + 1 > last ? last : first + 1,
                                     first + 2 > last ? last : first + 2,
                                     first + 3 > last ? last : first + 3};
    const float* w0 = weights + rows[0] * inputs;
    const float* w1 = weights + rows[1] * inputs;
    const float* w2 = weights + rows[2] * inputs;
    const float* w3 = weights + rows[3] * inputs;
    for (std::size_t lane = 0; lane < kLanes; lane += 2 * kWidth) {
      const auto begin = [&](std::size_t row) {
        const Vector all = Vector{} + bias[row];
        return Sums{all, all};
      };
      Sums sums0 = begin(rows[0]), sums1 = begin(rows[1]);
      Sums sums2 = begin(rows[2]), sums3 = begin(rows[3]);
      const float* from = source + lane;
      for (std::size_t i = 0; i < inputs; ++i, from += kLanes) {
        sums0.add(w0[i], from);
        sums1.add(w1[i], from);
        sums2.add(w2[i], from);
        sums3.add(w3[i], from);
      }
      sums0.put(target + rows[0] * kLanes + lane);
      sums1.put(target + rows[1] * kLanes + lane);
      sums2.put(target + rows[2] * kLanes + lane);
      sums3.put(target + rows[3] * kLanes + lane);
    }
  }
}

#ifdef TUNE_FOR_MACHINE
TUNE_FOR_MACHINE("avx512f")
void layer(const float* weights, const float* bias, const float* source, float* target,
           std::size_t inputs, std::size_t outputs) {
  layer_by<16>(weights, bias, source, target, inputs, outputs);
}
TUNE_FOR_MACHINE("avx2")
void layer(const float* weights, const float* bias, const float* source, float* target,
           std::size_t inputs, std::size_t outputs) {
  layer_by<8>(weights, bias, source, target, inputs, outputs);
}
TUNE_FOR_MACHINE("default")
#endif
void layer(const float* weights, const float* bias, const float* source, float* target,
           std::size_t inputs, std::size_t outputs) {
  layer_by<4>(weights, bias, source, target, inputs, outputs);
}

}  // namespace

void dense_layer(const float* weights, const float* bias, const float* source, float* target,
                 std::size_t inputs, std::size_t outputs) {
  layer(weights, bias, source, target, inputs, outputs);
}

}  // namespace tune
