// Standard deviations of the normal kernels of a Parzen estimator on [0, 1], and their weights
// (Optuna's, version 5). Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tune::search::tpe {

// The narrowest kernel among so many, and of those that there can ever be.
double narrowest_width(std::size_t kernels);
inline constexpr double kNarrowestWidth = 0.01;
inline constexpr double kPriorWidth = 1;

// The larger of the gaps to the next kernel on either side, in [narrowest_width, 1]. The first and
// the last have one gap, the one inwards; a single one has those to the bounds. Of kernels at one
// place the first has the gap below and the last the gap above; the order of numpy's sort, which
// decides this in Optuna, is not defined.
//
// With many kernels this costs one pass, not a sort: of two that are in the same 128th, the gap
// between is too narrow to count.
template <class Real>
void write_widths(std::span<const Real> places, std::span<Real> widths);
// The same, of some of more kernels, none of which lies between two of them.
template <class Real>
void write_widths(std::span<const Real> places, std::span<Real> widths, double narrowest);
extern template void write_widths(std::span<const float>, std::span<float>);
extern template void write_widths(std::span<const double>, std::span<double>);
extern template void write_widths(std::span<const float>, std::span<float>, double);
extern template void write_widths(std::span<const double>, std::span<double>, double);

// Whether kernels are many and lie so close together that all are of the narrowest width. Cheaper
// than to write them; false, too, where it does not find that out.
template <class Real>
bool are_dense(std::span<const Real> places);
extern template bool are_dense(std::span<const float>);
extern template bool are_dense(std::span<const double>);

// Weights of so many trials from the oldest to the newest, and of the prior after them; their sum
// is 1. The 25 newest and the prior weigh the same, the older ones the less the older.
std::vector<double> kernel_weights(std::size_t trials);

}  // namespace tune::search::tpe
