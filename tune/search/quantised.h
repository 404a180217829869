// Multiples of q, without the noise of floating point. Pure.
#pragma once

namespace tune {

// Whether `value` is a whole multiple of q, but for rounding.
bool is_multiple(double value, double q);
// The multiple of q nearest to `value`: 0.3 for 3 * 0.1, not 0.30000000000000004.
double quantised(double value, double q);

}  // namespace tune
