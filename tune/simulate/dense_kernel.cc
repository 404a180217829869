#include "tune/simulate/dense_kernel.h"

#include "core/each_machine.h"

namespace tune {

namespace {

constexpr std::size_t kWidth = 16;  // lanes of one vector
constexpr std::size_t kRows = 4;    // outputs that share what is read of the source
static_assert(kLanes % kWidth == 0);

typedef float Vector __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));

}  // namespace

TUNE_FOR_EACH_MACHINE
void dense_layer(const float* weights, const float* bias, const float* source, float* target,
                 std::size_t inputs, std::size_t outputs) {
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
    for (std::size_t lane = 0; lane < kLanes; lane += kWidth) {
      Vector sum0 = Vector{} + bias[rows[0]];
      Vector sum1 = Vector{} + bias[rows[1]];
      Vector sum2 = Vector{} + bias[rows[2]];
      Vector sum3 = Vector{} + bias[rows[3]];
      const float* from = source + lane;
      for (std::size_t i = 0; i < inputs; ++i, from += kLanes) {
        const Vector x = *reinterpret_cast<const Vector*>(from);
        sum0 += w0[i] * x;
        sum1 += w1[i] * x;
        sum2 += w2[i] * x;
        sum3 += w3[i] * x;
      }
      float* to = target + lane;
      *reinterpret_cast<Vector*>(to + rows[0] * kLanes) = sum0;
      *reinterpret_cast<Vector*>(to + rows[1] * kLanes) = sum1;
      *reinterpret_cast<Vector*>(to + rows[2] * kLanes) = sum2;
      *reinterpret_cast<Vector*>(to + rows[3] * kLanes) = sum3;
    }
  }
}

}  // namespace tune
