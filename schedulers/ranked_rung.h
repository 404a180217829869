// A Rung that also tells the rank of a value. Pure.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "schedulers/ranked_values.h"
#include "schedulers/rung.h"

namespace tune {

class RankedRung : public Rung {
 public:
  using Rung::Rung;

  void add(double value) {
    Rung::add(value);
    ranked_.add(value);
  }
  // The place among the values, from 1, of one that was added; equal ones share theirs.
  std::size_t rank(double value) const { return ranked_.better_than(value) + 1; }
  bool restore(std::vector<double> low, std::vector<double> high) {
    if (!Rung::restore(std::move(low), std::move(high))) return false;
    ranked_ = {};
    for (const std::vector<double>* heap : {&this->low(), &this->high()}) {
      for (const double value : *heap) ranked_.add(value);
    }
    return true;
  }

 private:
  RankedValues ranked_;
};

}  // namespace tune
