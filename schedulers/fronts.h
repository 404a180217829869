// Fronts: merits in the order of their non-dominated rank, kept up to date. Pure.
//
// Front 0 has those that no other one dominates, front 1 those that only front 0 dominates, and so
// on (Goldberg's rank, as in NSGA-II); behind all fronts stand those that break constraints, the
// one that breaks them least first. Within a front none is better than another, but a rung has
// fewer places than a front has members. There the order is an epsilon net (Salinas and others, "A
// multi-objective perspective on jointly tuning hardware and hyperparameters", 2021; Schmucker and
// others, "Multi-objective Asynchronous Successive Halving", arXiv 2106.12639): the best by the
// first objective comes first, then, again and again, the one farthest from all those before it,
// each objective being measured by its range in the front. So whatever share of a front is taken,
// it is spread over the whole of it; of equal distances the earlier member comes first. After the
// first kMostPicks of a front the others follow as they came.
//
// The simpler way is to sort all merits whenever one is added, which takes n^2 comparisons: 25
// million an event with 5,000 values in a rung. Here a new member is put where it belongs by a
// search over the fronts, and what it dominates moves one front on, as in Li and others, "Efficient
// Nondomination Level Update Method for Steady-State Evolutionary Multiobjective Optimization",
// 2017. Of two objectives a front has about the square root of n members, and few of them move; of
// many a front has nearly all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedulers/merit.h"

namespace tune {

class Fronts {
 public:
  using Members = std::vector<std::uint32_t>;
  static constexpr std::size_t kMostPicks = 256;

  void add(Merit merit);  // its number is the size before

  std::size_t size() const { return merits_.size(); }
  const std::vector<Merit>& merits() const { return merits_; }  // by number
  // Of those that keep the constraints; members by number.
  const std::vector<Members>& fronts() const { return fronts_; }
  // The number of members before one in the order; those with the same merit share a place.
  std::size_t place(std::size_t member) const;
  // The first so many in the order; all, if there are no more.
  Members best(std::size_t count) const;

 private:
  bool is_dominated(const Merit& merit, const Members& front) const;
  std::size_t front_for(const Merit& merit) const;
  Members taken_over(const Members& by, Members& front) const;
  void put(Members moving, std::size_t front);
  Members spread(const Members& front, std::size_t count) const;

  std::vector<Merit> merits_;
  std::vector<Members> fronts_;
  Members broken_;  // those that break constraints, by violation
};

// The numbers of the merits that no other one dominates, in order.
std::vector<std::size_t> pareto_front(const std::vector<Merit>& merits);
// The numbers of all merits in the order of Fronts, ties by number. For many merits at once.
std::vector<std::size_t> best_first(const std::vector<Merit>& merits);

}  // namespace tune
