// What kernels on [0, 1] are divided by, so that their masses there are 1. Pure.
#pragma once

#include <span>

namespace tune::search::tpe {

// The logarithm of the mass in [0, 1] of a normal density, in which its place is. With float, and
// the narrowest width, it is right to 3e-6.
template <class Real>
Real log_mass_within(Real place, Real width);
extern template float log_mass_within(float, float);
extern template double log_mass_within(double, double);

// Takes from each kernel's constant the logarithm of this mass, and then that of sqrt(2 pi) times
// its width, which makes a density of exp(-squares).
void subtract_norms(std::span<const float> places, std::span<const float> widths,
                    std::span<float> constants);
void subtract_norms(std::span<const double> places, std::span<const double> widths,
                    std::span<double> constants);

}  // namespace tune::search::tpe
