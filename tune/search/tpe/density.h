// The density of a group of trials on one sub-space: a Parzen estimator of products, as Optuna's
// multivariate TPE has it, version 5 (Bergstra et al., "Algorithms for Hyper-Parameter
// Optimization", NIPS 2011; Falkner, Klein and Hutter, "BOHB", ICML 2018, for the products). Pure.
//
// A kernel stands for each trial in which the sub-space is active, and one, as wide as the space,
// for the prior. In a number it is a normal density cut off at the bounds, and its mass in a cell
// where values are cells; in a choice of k options it gives (1 + 1 / n) / (1 + k / n) to the
// trial's option and (1 / n) / (1 + k / n) to each other one, with n kernels.
//
// Ours differs: everything is on [0, 1] as the space draws it. That is the same for uniform,
// loguniform and even whole numbers. Logarithms of whole numbers lie in cells [log v, log(v + 1)),
// since that is how they are drawn, not around log v; multiples have half a cell at the bounds;
// and normals, which Optuna does not have, are even. Where the cell in the middle is narrower than
// kNarrowCell, cells are points.
//
// Real is the number kernels are made of. With float, a density is right to about 1e-5 of its
// logarithm and its sums cost a third.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/tpe/cell_kinds.h"
#include "tune/search/tpe/even_masses.h"
#include "tune/search/tpe/evidence.h"
#include "tune/search/tpe/kernel_sums.h"
#include "tune/search/tpe/sub_spaces.h"

namespace tune::search::tpe {

inline constexpr double kNarrowCell = 0.005;  // half the narrowest kernel there is

template <class Real>
class Density {
 public:
  // All must outlive it, and nothing is added to the points.
  Density(const Encoding& encoding, const SubSpace& sub_space, const Columns<Real>& points);
  Density(const Encoding&, const SubSpace&, Columns<Real>&&) = delete;
  Density(Density&&) = default;  // no copy: `columns_` points into the others

  // At settled points in which the sub-space is active. Of a number the density is that of its
  // coordinate, of a cell its mass.
  std::vector<double> log_densities(const std::vector<UnitPoint>& points) const;
  // Sets the coordinates of the sub-space's parameters, settled, as the density has them.
  void draw(UnitPoint& point, RandomStream& random) const;

  std::size_t trials() const { return trials_; }

 private:
  // Kernels are columns: that of the prior first, then those of the trials.
  struct Number {
    std::size_t parameter = 0;
    std::size_t column = 0;  // of numbers
  };
  struct Cells {
    std::size_t parameter = 0;
    std::size_t column = 0;  // of kinds
    std::uint32_t even = 0;  // the number of cells if all have one width; else 0
    CellKinds<Real> kinds;
  };
  struct Options {
    std::size_t parameter = 0;
    std::size_t column = 0;  // of kinds
    std::size_t count = 0;
  };

  bool is_choice(std::size_t parameter) const {
    return encoding_.parameters()[parameter].domain.is_choice();
  }
  std::span<const Real> places_of(std::size_t parameter, const Columns<Real>& points);
  void add_number(std::size_t parameter, const Columns<Real>& points);
  void add_cells(std::size_t parameter, const Columns<Real>& points);
  void add_options(std::size_t parameter, const Columns<Real>& points);
  std::vector<Real>& new_column();
  std::span<std::uint32_t> new_kinds();
  void set_narrowest();
  FactorTable<Real> cell_table(const Cells& cells, double unit, EvenMasses<Real>& masses) const;
  FactorTable<Real> option_table(const Options& options, std::size_t option) const;
  double drawn_normal(double place, double width, RandomStream& random) const;
  double drawn_option(const Options& options, std::size_t kernel, RandomStream& random) const;

  const Encoding& encoding_;
  std::size_t trials_ = 0;
  std::vector<std::size_t> active_;  // of the points
  std::vector<double> weights_;
  std::vector<Number> numbers_;
  std::vector<Cells> cells_;
  std::vector<Options> options_;
  KernelColumns<Real> columns_;
  std::vector<std::vector<Real>> own_columns_;
  std::vector<std::vector<std::uint32_t>> own_kinds_;
  std::vector<Real> narrowest_widths_;  // of columns all of whose kernels are the narrowest
  std::vector<Real> narrowest_scales_;
};
extern template class Density<float>;
extern template class Density<double>;

}  // namespace tune::search::tpe
