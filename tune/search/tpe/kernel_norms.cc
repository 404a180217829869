#include "tune/search/tpe/kernel_norms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "core/each_machine.h"
#include "core/error.h"
#include "tune/search/tpe/widths.h"

namespace tune::search::tpe {

namespace {

constexpr std::size_t kAtOnce = 64;  // kernels

// So many standard deviations from a bound, nothing of a kernel lies beyond it.
template <class Real>
constexpr Real kWellInside = 8.5;
template <>
constexpr float kWellInside<float> = 5.5F;

template <class Real>
constexpr Real kNarrowest = static_cast<Real>(kNarrowestWidth);

template <class Real>
Real log_mass_inside(Real place, Real width) {
  constexpr Real kRootHalf = std::numbers::sqrt2_v<Real> / 2;
  const Real below = std::erfc(place / width * kRootHalf);
  const Real above = std::erfc((1 - place) / width * kRootHalf);
  return std::log1p(-(below + above) / 2);
}

// The same for the narrowest kernels there are, which reach beyond one bound at most. Most of those
// that do anything at all are of this kind; so with float it is looked up.
double log_mass_at_bound(double distance) {
  return log_mass_inside(distance, kNarrowestWidth);
}
TUNE_INLINE float log_mass_at_bound(float distance) {
  constexpr int kSteps = 1024;
  constexpr float kStep = kWellInside<float> * kNarrowest<float> / static_cast<float>(kSteps);
  static const std::array<float, kSteps + 2> table = [] {
    std::array<float, kSteps + 2> made{};
    for (std::size_t i = 0; i < made.size(); ++i) {
      const double at = static_cast<double>(kStep) * static_cast<double>(i);
      made[i] = static_cast<float>(log_mass_inside(at, kNarrowestWidth));
    }
    return made;
  }();
  const float steps = distance / kStep;
  const auto i = static_cast<std::size_t>(std::min(static_cast<int>(steps), kSteps));
  return table[i] + (table[i + 1] - table[i]) * (steps - static_cast<float>(i));
}

template <class Real>
TUNE_INLINE bool is_well_inside(Real place, Real width) {
  return std::min(place, 1 - place) >= kWellInside<Real> * width;
}

template <class Real>
Real log_root() {
  return std::log(2 * std::numbers::pi_v<Real>) / 2;
}

// Most are of the narrowest width and well inside: these are passed over together.
template <class Real>
TUNE_INLINE void subtract_all(std::span<const Real> places, std::span<const Real> widths,
                              Real* constants) {
  const Real of_narrowest = std::log(kNarrowest<Real>) + log_root<Real>();
  for (std::size_t first = 0; first < places.size(); first += kAtOnce) {
    const std::size_t end = std::min(first + kAtOnce, places.size());
    std::uint64_t others = 0;
    for (std::size_t i = first; i < end; ++i) {
      const bool at_bound = !is_well_inside(places[i], kNarrowest<Real>);
      const std::uint64_t is_other = static_cast<std::uint32_t>(at_bound) |
                                     static_cast<std::uint32_t>(widths[i] != kNarrowest<Real>);
      others |= is_other << (i - first);
    }
    for (; others != 0; others &= others - 1) {
      const std::size_t i = first + static_cast<std::size_t>(std::countr_zero(others));
      if (widths[i] == kNarrowest<Real>) {
        constants[i] -= log_mass_at_bound(std::min(places[i], 1 - places[i]));
      } else {
        constants[i] -= log_mass_within(places[i], widths[i]);
        constants[i] -= std::log(widths[i]) + log_root<Real>();
      }
    }
    for (std::size_t i = first; i < end; ++i) {
      constants[i] -= widths[i] == kNarrowest<Real> ? of_narrowest : Real{0};
    }
  }
}

TUNE_FOR_EACH_MACHINE
void subtract_floats(std::span<const float> places, std::span<const float> widths,
                     float* constants) {
  subtract_all(places, widths, constants);
}

}  // namespace

template <class Real>
Real log_mass_within(Real place, Real width) {
  if (is_well_inside(place, width)) return 0;
  if (width != kNarrowest<Real>) return log_mass_inside(place, width);
  return log_mass_at_bound(std::min(place, 1 - place));
}
template float log_mass_within(float, float);
template double log_mass_within(double, double);

void subtract_norms(std::span<const float> places, std::span<const float> widths,
                    std::span<float> constants) {
  TUNE_CHECK(places.size() == widths.size());
  TUNE_CHECK(places.size() <= constants.size());
  subtract_floats(places, widths, constants.data());
}

void subtract_norms(std::span<const double> places, std::span<const double> widths,
                    std::span<double> constants) {
  TUNE_CHECK(places.size() == widths.size());
  TUNE_CHECK(places.size() <= constants.size());
  subtract_all(places, widths, constants.data());
}

}  // namespace tune::search::tpe
