#include "tune/search/tpe/kernel_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/each_machine.h"
#include "core/error.h"

namespace tune::search::tpe {

namespace {

constexpr std::size_t kLanes = 16;         // of sums that are made side by side
constexpr std::size_t kColumnsAtOnce = 4;  // before it is asked whether more are needed
static_assert(kBlock % kLanes == 0);

// The distance below the largest at which a product is nothing to the sum, of a million of them.
template <class Real>
constexpr Real kNothing = 0;
template <>
constexpr float kNothing<float> = 30;
template <>
constexpr double kNothing<double> = 60;

// The distance below the largest at which a product is the same to the sum as any smaller one: the
// exponential of both is that of -80, or 0. It is a little more, since sums round.
template <class Real>
constexpr Real kNegligible = 0;
template <>
constexpr float kNegligible<float> = 81;
template <>
constexpr double kNegligible<double> = 750;

// exp(x) for x <= 0, with a relative error below 1e-6: 2^n times a polynomial on half a step.
TUNE_INLINE float exponential(float x) {
  const float bounded = x < -80.0F ? -80.0F : x;
  const float shifted = bounded * 1.44269504F + 12582912.0F;  // the whole number is in the low bits
  const float whole = shifted - 12582912.0F;
  const float r = bounded - whole * 0.693359375F + whole * 2.12194440e-4F;
  const float sum =
      1 + r * (1 + r * (0.5F + r * (0.166666667F + r * (0.0416666667F + r * 0.00833333333F +
                                                        r * r * 0.00138888889F))));
  const std::uint32_t power = (std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3F800000U;
  return sum * std::bit_cast<float>(power);
}

TUNE_INLINE double exponential(double x) {
  return x < -kNegligible<double> ? 0 : std::exp(x);  // which takes long to find that out
}

template <class Real>
TUNE_INLINE Real largest(const Real* sums) {
  Real lanes[kLanes];
  for (std::size_t j = 0; j < kLanes; ++j) lanes[j] = sums[j];
  for (std::size_t i = kLanes; i < kBlock; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      lanes[j] = lanes[j] < sums[i + j] ? sums[i + j] : lanes[j];
    }
  }
  Real found = lanes[0];
  for (std::size_t j = 1; j < kLanes; ++j) found = found < lanes[j] ? lanes[j] : found;
  return found;
}

template <class Real>
TUNE_INLINE bool are_below(const Real* sums, Real least) {
  std::uint32_t others = 0;
  for (std::size_t i = 0; i < kBlock; ++i) others |= static_cast<std::uint32_t>(sums[i] >= least);
  return others == 0;
}

template <class Real>
TUNE_INLINE Real sum_of_exponentials(const Real* sums, Real highest) {
  Real lanes[kLanes] = {};
  for (std::size_t i = 0; i < kBlock; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += exponential(sums[i + j] - highest);
  }
  Real sum = 0;
  for (std::size_t j = 0; j < kLanes; ++j) sum += lanes[j];
  return sum;
}

template <class Real>
struct Total {
  Real needed = 0;  // the products that count are at least this
  Real highest = std::numeric_limits<Real>::lowest();
  double sum = 0;  // of exponentials less the highest
};

template <class Real>
TUNE_INLINE bool is_unknown(Real logarithm) {
  return logarithm > 0;
}

template <class Real>
Real known(FactorTable<Real>& table, std::uint32_t kind) {
  Real& logarithm = table.logarithms[kind];
  if (is_unknown(logarithm)) logarithm = table.of_kind(kind);
  return logarithm;
}

template <class Real>
TUNE_INLINE void add_factors(const std::uint32_t* kinds, FactorTable<Real>& table, Real needed,
                             Real* sums) {
  const Real* logarithms = table.logarithms.data();
  alignas(64) Real factors[kBlock];
  std::uint32_t missing = 0;
  for (std::size_t i = 0; i < kBlock; ++i) factors[i] = logarithms[kinds[i]];
  for (std::size_t i = 0; i < kBlock; ++i) {
    missing |= static_cast<std::uint32_t>(sums[i] >= needed) &
               static_cast<std::uint32_t>(is_unknown(factors[i]));
  }
  if (missing != 0) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      if (sums[i] >= needed) factors[i] = known(table, kinds[i]);
    }
  }
  for (std::size_t i = 0; i < kBlock; ++i) sums[i] += factors[i];
}

// The logarithms of one block's products in `sums`; false when they are nothing to the total.
template <class Real>
TUNE_INLINE bool products_of(const KernelColumns<Real>& columns, std::size_t first,
                             const SumPoint<Real>& point, Real least, Real needed, Real* sums) {
  for (std::size_t i = 0; i < kBlock; ++i) sums[i] = columns.constants[first + i];
  for (std::size_t column = 0; column < columns.places.size(); ++column) {
    const Real* places = columns.places[column] + first;
    const Real* scales = columns.scales[column] + first;
    const Real at = point.numbers[column];
    for (std::size_t i = 0; i < kBlock; ++i) {
      const Real distance = (places[i] - at) * scales[i];
      sums[i] -= distance * distance;
    }
    if (column % kColumnsAtOnce == kColumnsAtOnce - 1 && are_below(sums, least)) return false;
  }
  for (std::size_t column = 0; column < columns.kinds.size(); ++column) {
    add_factors(columns.kinds[column] + first, *point.tables[column], needed, sums);
    if (column % kColumnsAtOnce == kColumnsAtOnce - 1 && are_below(sums, least)) return false;
  }
  return true;
}

template <class Real>
TUNE_INLINE void add_block(const KernelColumns<Real>& columns, std::size_t first,
                           const SumPoint<Real>& point, Total<Real>& total) {
  alignas(64) Real sums[kBlock];
  const Real least = total.highest - kNothing<Real>;
  if (!products_of(columns, first, point, least, total.needed, sums)) return;
  const Real highest = largest(sums);
  if (highest > total.highest) {
    total.sum *= std::exp(static_cast<double>(total.highest) - static_cast<double>(highest));
    total.highest = highest;
    total.needed = std::max(total.needed, highest - kNegligible<Real>);
  }
  total.sum += static_cast<double>(sum_of_exponentials(sums, total.highest));
}

// Block by block, so that one stays in the cache while all points are asked.
template <class Real>
TUNE_INLINE void add_all(const KernelColumns<Real>& columns,
                         const std::vector<SumPoint<Real>>& points,
                         std::vector<Total<Real>>& totals) {
  for (std::size_t first = 0; first < columns.kernels; first += kBlock) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      add_block(columns, first, points[i], totals[i]);
    }
  }
}

TUNE_FOR_EACH_MACHINE
void add_floats(const KernelColumns<float>& columns, const std::vector<SumPoint<float>>& points,
                std::vector<Total<float>>& totals) {
  add_all(columns, points, totals);
}

TUNE_FOR_EACH_MACHINE
void add_doubles(const KernelColumns<double>& columns, const std::vector<SumPoint<double>>& points,
                 std::vector<Total<double>>& totals) {
  add_all(columns, points, totals);
}

// The logarithm of the first kernel's product, which the largest is not below.
template <class Real>
Real first_product(const KernelColumns<Real>& columns, const SumPoint<Real>& point) {
  Real sum = columns.constants.front();
  for (std::size_t column = 0; column < columns.places.size(); ++column) {
    const Real distance =
        (*columns.places[column] - point.numbers[column]) * *columns.scales[column];
    sum -= distance * distance;
  }
  for (std::size_t column = 0; column < columns.kinds.size(); ++column) {
    sum += known(*point.tables[column], *columns.kinds[column]);
  }
  return sum;
}

template <class Real>
std::vector<Total<Real>> totals_of(const KernelColumns<Real>& columns,
                                   const std::vector<SumPoint<Real>>& points) {
  TUNE_CHECK(columns.kernels % kBlock == 0u);
  std::vector<Total<Real>> totals;
  for (const SumPoint<Real>& point : points) {
    totals.push_back({first_product(columns, point) - kNegligible<Real>});
  }
  return totals;
}

template <class Real>
std::vector<double> logarithms(const std::vector<Total<Real>>& totals) {
  std::vector<double> found;
  for (const Total<Real>& total : totals) {
    found.push_back(std::log(total.sum) + static_cast<double>(total.highest));
  }
  return found;
}

}  // namespace

std::vector<double> log_sums(const KernelColumns<float>& columns,
                             const std::vector<SumPoint<float>>& points) {
  std::vector<Total<float>> totals = totals_of(columns, points);
  add_floats(columns, points, totals);
  return logarithms(totals);
}

std::vector<double> log_sums(const KernelColumns<double>& columns,
                             const std::vector<SumPoint<double>>& points) {
  std::vector<Total<double>> totals = totals_of(columns, points);
  add_doubles(columns, points, totals);
  return logarithms(totals);
}

}  // namespace tune::search::tpe
