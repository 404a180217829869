// Sums over the kernels of a Parzen estimator. Pure.
//
// A kernel is a product: of normal densities at places, whose scaled squares of distances are
// computed, and of factors that depend on the kernel's kind in a column, whose logarithms are
// looked up. Kernels come in blocks. A block whose partial products are all far below the largest
// product found is left; 20 columns end so after a few. Factors that only such products would have
// are never computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tune::search::tpe {

inline constexpr std::size_t kBlock = 64;  // kernels
// So many kernels and those that fill up the last block.
constexpr std::size_t in_blocks(std::size_t kernels) {
  return (kernels + kBlock - 1) / kBlock * kBlock;
}

template <class Real>
struct KernelColumns {
  std::size_t kernels = 0;      // in whole blocks; those that fill up the last weigh nothing
  std::vector<Real> constants;  // logarithms of what does not depend on the point
  // Columns of kernels, which must outlive this: for each number where they lie, and scales,
  // 1 / (sqrt(2) * standard deviation); for each table of what kind they are.
  std::vector<const Real*> places;
  std::vector<const Real*> scales;
  std::vector<const std::uint32_t*> kinds;
};

// The logarithms of factors by kind, which are not above 0. Those that are kUnknown are asked for
// when a sum depends on them.
template <class Real>
struct FactorTable {
  std::vector<Real> logarithms;
  std::function<Real(std::uint32_t)> of_kind = {};
};
template <class Real>
inline constexpr Real kUnknown = static_cast<Real>(1e-30);  // to a sum the same as 0

template <class Real>
struct SumPoint {
  std::vector<Real> numbers;               // where it lies, a place for each column of numbers
  std::vector<FactorTable<Real>*> tables;  // for each column of tables; points may share them
};

// The logarithm of the sum over all kernels, for each of the points. With float the sums are right
// to about 1e-5, and the same with every instruction set.
std::vector<double> log_sums(const KernelColumns<float>& columns,
                             const std::vector<SumPoint<float>>& points);
std::vector<double> log_sums(const KernelColumns<double>& columns,
                             const std::vector<SumPoint<double>>& points);

}  // namespace tune::search::tpe
