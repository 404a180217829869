// The kernels of a column of cells, in kinds. Pure.
//
// Few places occur, and of the kernels at one place all but the first and the last are of the
// narrowest width (tune/search/tpe/widths.h): so there are at most three kinds for each place,
// however many kernels there are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tune::search::tpe {

template <class Real>
struct CellKinds {
  std::vector<Real> places;
  std::vector<Real> widths;
  std::vector<Real> log_masses;  // logarithms of what they have in [0, 1]
};

// Writes the kind of each kernel. The first is the prior, of a kind of its own.
template <class Real>
CellKinds<Real> cell_kinds(std::span<const Real> places, std::span<std::uint32_t> kinds);
extern template CellKinds<float> cell_kinds(std::span<const float>, std::span<std::uint32_t>);
extern template CellKinds<double> cell_kinds(std::span<const double>, std::span<std::uint32_t>);

}  // namespace tune::search::tpe
