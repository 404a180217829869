// The products of a dense layer, which are nearly all of a surrogate's time. Pure.
#pragma once

#include <cstddef>

namespace tune {

// So many rows are computed at once; a register holds them side by side: [width][kLanes].
inline constexpr std::size_t kLanes = 32;

// target[o] = bias[o] + sum over i of weights[o * inputs + i] * source[i], for each lane.
//
// The sums run over i in order, without fused products, and lanes do not meet: the same bits come
// out with every instruction set, so that a simulation is the same on every machine.
void dense_layer(const float* weights, const float* bias, const float* source, float* target,
                 std::size_t inputs, std::size_t outputs);

}  // namespace tune
