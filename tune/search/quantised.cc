#include "tune/search/quantised.h"

#include <algorithm>
#include <cmath>

namespace tune {

namespace {

// k * q without the noise of the product (3 * 0.1 is 0.30000000000000004): q is m / 10^d when it is
// a short decimal.
double multiple_of(double k, double q) {
  for (double scale = 1; scale <= 1e12; scale *= 10) {
    const double whole = q * scale;
    if (std::abs(whole - std::round(whole)) < 1e-9 * whole) return k * std::round(whole) / scale;
  }
  return k * q;
}

}  // namespace

bool is_multiple(double value, double q) {
  const double ratio = value / q;
  return std::abs(ratio - std::round(ratio)) <= 1e-9 * std::max(1.0, std::abs(ratio));
}

double quantised(double value, double q) {
  return multiple_of(std::round(value / q), q);
}

}  // namespace tune
