// Sums over the kernels of a Parzen estimator, which are nearly all of a proposal's time. Pure.
//
// A kernel is a product: of normal densities at places, whose scaled squares of distances are
// computed, and of factors that depend on the kernel's kind in a column, whose logarithms are
// looked up. Kernels come in blocks. A block whose partial products are all far below the largest
// product found is left; 20 columns end so after a few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tune::search::tpe {

inline constexpr std::size_t kBlock = 64;  // kernels

template <class Real>
struct KernelColumns {
  std::size_t kernels = 0;           // in whole blocks; those that fill up the last weigh nothing
  std::vector<Real> constants;       // logarithms of what does not depend on the point
  std::vector<Real> places;          // a column of kernels for each number
  std::vector<Real> scales;          // likewise: 1 / (sqrt(2) * standard deviation)
  std::vector<std::uint32_t> kinds;  // a column of kernels for each table
  std::size_t numbers = 0;
  std::size_t tables = 0;
};

template <class Real>
struct SumPoint {
  std::vector<Real> numbers;        // where it lies, a place for each column of numbers
  std::vector<const Real*> tables;  // logarithms by kind, for each column of tables
};

// The logarithm of the sum over all kernels, for each of the points. With float the sums are right
// to about 1e-5, and the same with every instruction set.
std::vector<double> log_sums(const KernelColumns<float>& columns,
                             const std::vector<SumPoint<float>>& points);
std::vector<double> log_sums(const KernelColumns<double>& columns,
                             const std::vector<SumPoint<double>>& points);

}  // namespace tune::search::tpe
