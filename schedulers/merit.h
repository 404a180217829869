// Merit: what a result is worth where one number does not say it: under several objectives, or
// under constraints. Pure.
//
// A trial that keeps all constraints is better than any that does not; of those that do not, the
// one that breaks them less in total is better (Deb and others, "A Fast and Elitist Multiobjective
// Genetic Algorithm: NSGA-II", 2002, calls it constrained domination). Metrics have units of their
// own, so that by how much a bound is broken counts in sizes of the bound: 25 breaks `max: 20` by a
// quarter. Of those that keep all, one is better than another when it is better by one objective
// and worse by none; else neither is.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/trial_scheduler.h"

namespace tune {

// Whether an objective has several goals, or constraints; else a value and a mode say all.
bool needs_merit(const Objective& objective);
// The metric and its mode, where there are no others; empty when there is none.
std::vector<Goal> goals_of(const Objective& objective);
// All metrics that a result is to have, each once.
std::vector<std::string> metrics_of(const Objective& objective);
// "loss (min), accuracy (max); latency_ms <= 20".
std::string describe(const Objective& objective);

// Of a result, for each goal its value, larger being better, and for each constraint the margin by
// which it is kept, in sizes of the bound; below 0 it is broken. A value that is not finite is
// -infinity. Nothing when the result lacks one of the metrics.
using MeritNumbers = std::vector<double>;
using NumberAt = std::function<std::optional<double>(std::string_view path)>;
std::optional<MeritNumbers> numbers_of(const Objective& objective, const NumberAt& number);

struct Merit {
  std::vector<double> values;  // of the goals, larger is better
  double violation = 0;        // of all constraints; infinite when a number is not finite
  friend bool operator==(const Merit&, const Merit&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.values, s.violation);
  }
};

// Of numbers that begin with those of so many goals; too few of them are the worst there is.
Merit merit_of(std::span<const double> numbers, std::size_t goals);
// Not for merits of different objectives.
bool dominates(const Merit& a, const Merit& b);

}  // namespace tune
