// The variables of CMA-ES with categories and margin: which parameters are continuous, which have
// a cell for each value, and which are categories. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tune/search/encoding.h"

namespace tune::search::cma_es {

// A value drawn: numbers where they were drawn, also between cells and beyond the bounds, and the
// position of each category.
struct Drawn {
  std::vector<double> numbers;
  std::vector<std::uint32_t> categories;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.numbers, s.categories);
  }
};

// Where a number changes its cell next; in the first and the last cell both are the one there is.
struct Thresholds {
  double below = 0;
  double above = 0;
};

class Variables {
 public:
  // Throws Error (kBadInput), naming the keys, when parameters depend on a choice. `encoding` must
  // outlive it.
  explicit Variables(const Encoding& encoding);

  // First the continuous ones, then those in cells. A number of two values is a category.
  std::size_t numbers() const { return numbers_.size(); }
  std::size_t continuous() const { return continuous_; }
  std::size_t in_cells() const { return numbers_.size() - continuous_; }
  std::span<const std::uint32_t> category_sizes() const { return sizes_; }
  std::size_t size() const { return numbers_.size() + categories_.size(); }

  // Of a number in cells: the coordinate that stands for its cell, and the borders.
  double in_cell(std::size_t number, double unit) const;
  Thresholds thresholds(std::size_t number, double unit) const;
  UnitPoint point(const Drawn& drawn) const;
  Drawn drawn(const UnitPoint& point) const;  // one that has this point

 private:
  const UnitDomain& domain(std::size_t number) const {
    return encoding_.parameters()[numbers_[number]].domain;
  }
  const Encoding& encoding_;
  std::vector<std::size_t> numbers_;  // parameters
  std::size_t continuous_ = 0;
  std::vector<std::size_t> categories_;  // parameters
  std::vector<std::uint32_t> sizes_;
};

}  // namespace tune::search::cma_es
