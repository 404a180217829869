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
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/tpe/evidence.h"
#include "tune/search/tpe/kernel_sums.h"
#include "tune/search/tpe/sub_spaces.h"

namespace tune::search::tpe {

inline constexpr double kNarrowCell = 0.005;  // half the narrowest kernel there is

template <class Real>
class Density {
 public:
  // `encoding` and `sub_space` must outlive it.
  Density(const Encoding& encoding, const SubSpace& sub_space, const Columns& points);

  // At settled points in which the sub-space is active. Of a number the density is that of its
  // coordinate, of a cell its mass.
  std::vector<double> log_densities(const std::vector<UnitPoint>& points) const;
  // Sets the coordinates of the sub-space's parameters, settled, as the density has them.
  void draw(UnitPoint& point, RandomStream& random) const;

  std::size_t trials() const { return trials_; }

 private:
  // A column of normal kernels: of places and scales, or, for cells, of kinds that have both.
  struct Normals {
    std::size_t parameter = 0;
    std::vector<Real> places;  // of the prior first, then of the trials
    std::vector<Real> widths;
    bool all_narrowest = false;  // but for the prior
    bool cells = false;
    std::vector<std::size_t> kinds = {};  // with cells: for each kind, one kernel that is of it
  };
  struct Options {
    std::size_t parameter = 0;
    std::size_t count = 0;
    std::vector<std::uint32_t> taken = {};  // by the trials
  };

  bool is_choice(std::size_t parameter) const {
    return encoding_.parameters()[parameter].domain.is_choice();
  }
  void reserve_columns();
  void add_normals(std::size_t parameter, std::vector<Real> places);
  void cut_off(const Normals& normals);
  void add_number_column(const Normals& normals);
  void add_cell_column(Normals& normals);
  void add_options(std::size_t parameter, const std::vector<Real>& places);
  std::vector<Real> places_of(std::size_t parameter, const Columns& points) const;
  std::vector<Real> cell_table(const Normals& normals, double unit) const;
  std::vector<Real> option_table(const Options& options, std::size_t option) const;
  void draw_normal(const Normals& normals, std::size_t kernel, UnitPoint& point,
                   RandomStream& random) const;
  void draw_option(const Options& options, std::size_t kernel, UnitPoint& point,
                   RandomStream& random) const;

  const Encoding& encoding_;
  const SubSpace& sub_space_;
  std::size_t trials_ = 0;
  std::vector<std::size_t> active_;  // of the points, when not all are
  std::vector<double> weights_;      // of the prior first
  std::vector<Normals> normals_;
  std::vector<Options> options_;
  KernelColumns<Real> columns_;
};
extern template class Density<float>;
extern template class Density<double>;

}  // namespace tune::search::tpe
