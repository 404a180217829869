// The evidence that tpe learns from: a history's good trials and all others, side by side. Pure.
//
// Which are good (Optuna's TPESampler, version 5, default_gamma and _split_trials): of n results
// the best ceil(n / 10), at most 25; trials that completed come first, by value, then those that
// ended before, the further the better and then by value. Trials that run belong to the others.
// Ours differs: a failed trial is one that ended before, or, without a value, the worst of all;
// there it is left out, and what fails is proposed again.
//
// Once a scheduler has kept back or ended a trial, values of different numbers of steps do not
// compare: tune/search/comparable_results.h.
//
// With several objectives the best are the first in the order of schedulers/fronts.h, whether they
// completed or not. Trials that break constraints belong to the others; only where all of them do,
// those that break them least are good (Optuna fills the good ones up with them whenever less than
// a tenth keeps the constraints).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/ids.h"
#include "tune/search/history.h"
#include "tune/search/tpe/kernel_sums.h"

namespace tune::search::tpe {

inline constexpr std::size_t kMostGood = 25;

// The number of good ones of so many results.
std::size_t good_of(std::size_t results);

// Points, a column of coordinates for each parameter. Before the first stands the middle of the
// space, and behind the last there are zeros up to the next whole block, so that columns need not
// be copied to become those of kernels.
template <class Real>
class Columns {
 public:
  Columns() = default;
  Columns(std::size_t parameters, std::size_t room)
      : room_(room),
        stride_(in_blocks(room + 1)),
        parameters_(parameters),
        values_(std::make_unique_for_overwrite<Real[]>(parameters * stride_)) {
    for (std::size_t i = 0; i < parameters; ++i) values_[i * stride_] = Real{0.5};
    fill_up();
  }

  // There is room for them (TUNE_CHECK).
  void add(std::span<const UnitPoint* const> points) {
    TUNE_CHECK(points.size() <= room_ - size_);
    for (std::size_t i = 0; i < points.size(); i += kAtOnce) {
      add_some(points.subspan(i, std::min(kAtOnce, points.size() - i)));
    }
    fill_up();
  }
  void add(const UnitPoint& point) { add(std::array{&point}); }
  std::size_t size() const { return size_; }
  std::span<const Real> column(std::size_t parameter) const {
    return with_middle(parameter).subspan(1);
  }
  std::span<const Real> with_middle(std::size_t parameter) const {
    return {values_.get() + parameter * stride_, size_ + 1};
  }

 private:
  static constexpr std::size_t kAtOnce = 16;  // so that a line of a column is written at once

  void add_some(std::span<const UnitPoint* const> points) {
    std::array<const double*, kAtOnce> from{};
    std::size_t of_another_space = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      from[i] = points[i]->data();
      of_another_space += points[i]->size() == parameters_ ? 0 : 1;
    }
    TUNE_CHECK(of_another_space == 0u);
    for (std::size_t parameter = 0; parameter < parameters_; ++parameter) {
      Real* to = values_.get() + parameter * stride_ + size_ + 1;
      if (points.size() == kAtOnce) {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kAtOnce; ++i) to[i] = static_cast<Real>(from[i][parameter]);
      } else {
        for (std::size_t i = 0; i < points.size(); ++i) {
          to[i] = static_cast<Real>(from[i][parameter]);
        }
      }
    }
    size_ += points.size();
  }
  void fill_up() {
    for (std::size_t parameter = 0; parameter < parameters_; ++parameter) {
      Real* column = values_.get() + parameter * stride_;
      std::fill(column + size_ + 1, column + in_blocks(size_ + 1), Real{0});
    }
  }

  std::size_t room_ = 0;
  std::size_t stride_ = 0;
  std::size_t parameters_ = 0;
  std::size_t size_ = 0;
  std::unique_ptr<Real[]> values_;
};

struct Evidence {
  std::vector<std::size_t> good;  // trials of the history, in its order
  Columns<double> good_points;    // of those
  Columns<float> other_points;    // in the order of the history; with room for more
  std::uint32_t results_known = 0;
  std::uint32_t pending_known = 0;  // of the others, those without a result
  bool stopped_early = false;       // a scheduler keeps back or ends trials
  std::string trouble = {};         // why nothing can be learnt; mostly empty
};

// With room for `more` others.
Evidence evidence(const History& history, std::size_t parameters, std::size_t more);

}  // namespace tune::search::tpe
