#include "tune/search/ped_anova.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/random.h"

namespace tune {

namespace {

constexpr std::size_t kCells = 50;     // of a parameter that is a number
constexpr int kDraws = 400;            // of trials at random
constexpr double kOutstanding = 0.99;  // of the draws have less
constexpr std::size_t kFewestBest = 8;
constexpr double kScott = 1.059;

using Density = std::vector<double>;       // by cell, the sum is 1
using Indices = std::vector<std::size_t>;  // of trials

// One parameter: where the trials that have it lie.
class Compared {
 public:
  Compared(const Encoding& encoding, std::size_t parameter, const std::vector<UnitPoint>& points)
      : is_choice_(encoding.parameters()[parameter].domain.is_choice()),
        cells_(is_choice_ ? options_of(encoding, parameter) : kCells),
        units_(points.size(), kInactive) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i][parameter] < 0) continue;
      ++active_;
      units_[i] = is_choice_ ? static_cast<double>(encoding.option(parameter, points[i]))
                             : std::clamp(points[i][parameter], 0.0, 1.0);
    }
    counts_ = counts(units_);
  }
  std::size_t active() const { return active_; }

  // Of these trials from all, among those that have the parameter, by the share that has it.
  double divergence(const Indices& chosen) const {
    std::vector<double> units;
    for (const std::size_t i : chosen) {
      if (units_[i] >= 0) units.push_back(units_[i]);
    }
    if (units.size() < 2) return 0;
    const double share = static_cast<double>(units.size()) / static_cast<double>(chosen.size());
    const Density kernel = is_choice_ ? Density() : kernel_of(bandwidth(units));
    const Density best = density(counts(units), kernel);
    const Density all = density(counts_, kernel);
    double sum = 0;
    for (std::size_t cell = 0; cell < cells_; ++cell) {
      if (all[cell] > 0) sum += best[cell] * best[cell] / all[cell];
    }
    return share * std::max(sum - 1, 0.0);
  }

 private:
  static std::size_t options_of(const Encoding& encoding, std::size_t parameter) {
    const Domain& domain = encoding.parameters()[parameter].domain.domain();
    return std::get<Domain::Choice>(domain.kind()).values.size();
  }

  Density counts(const std::vector<double>& units) const {
    Density sums(cells_, 0);
    for (const double unit : units) {
      if (unit < 0) continue;
      const double cell = is_choice_ ? unit : unit * static_cast<double>(cells_);
      ++sums[std::min(static_cast<std::size_t>(cell), cells_ - 1)];
    }
    return sums;
  }

  // Scott's rule, with the spread of the middle half where a few lie far away; at least a cell.
  static double bandwidth(std::vector<double> units) {
    const auto n = static_cast<double>(units.size());
    const double mean = std::accumulate(units.begin(), units.end(), 0.0) / n;
    double variance = 0;
    for (const double unit : units) variance += (unit - mean) * (unit - mean) / (n - 1);
    std::sort(units.begin(), units.end());
    const double middle = units[units.size() * 3 / 4] - units[units.size() / 4];
    const double deviation = std::sqrt(variance);
    const double spread = middle > 0 ? std::min(deviation, middle / 1.349) : deviation;
    return std::max(kScott * spread * std::pow(n, -0.2), 1.0 / kCells);
  }

  // The weights at so many cells' distance.
  static Density kernel_of(double bandwidth) {
    Density weights;
    for (std::size_t away = 0; away < kCells; ++away) {
      const double distance = static_cast<double>(away) / kCells / bandwidth;
      weights.push_back(std::exp(-distance * distance / 2));
    }
    return weights;
  }

  // Each cell's trials are spread over the cells around it, within the bounds; without a kernel
  // they stay.
  static Density density(const Density& sums, const Density& kernel) {
    Density spread = kernel.empty() ? sums : Density(sums.size(), 0);
    for (std::size_t from = 0; from < sums.size() && !kernel.empty(); ++from) {
      if (sums[from] == 0) continue;
      const auto weight = [&](std::size_t to) { return kernel[from < to ? to - from : from - to]; };
      double total = 0;
      for (std::size_t to = 0; to < sums.size(); ++to) total += weight(to);
      for (std::size_t to = 0; to < sums.size(); ++to)
        spread[to] += sums[from] * weight(to) / total;
    }
    const double all = std::accumulate(spread.begin(), spread.end(), 0.0);
    for (double& each : spread) each /= all;
    return spread;
  }

  bool is_choice_;
  std::size_t cells_;
  std::vector<double> units_;  // by trial: the coordinate, of a choice the option; kInactive
  std::size_t active_ = 0;
  Density counts_;
};

Indices best_trials(const std::vector<double>& scores) {
  Indices order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(best_of(scores.size()));
  return order;
}

// So many different trials, by the first steps of a shuffle.
Indices drawn(std::size_t count, std::size_t trials, RandomStream& random) {
  Indices order(trials);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i < count; ++i) {
    const auto other = static_cast<std::size_t>(
        random.integer(static_cast<std::int64_t>(i), static_cast<std::int64_t>(trials)));
    std::swap(order[i], order[other]);
  }
  order.resize(count);
  return order;
}

}  // namespace

std::size_t best_of(std::size_t trials) {
  return std::max((trials + 9) / 10, std::min(kFewestBest, trials / 4));
}

std::vector<ParameterImportance> ped_anova(const Encoding& encoding,
                                           const std::vector<UnitPoint>& points,
                                           const std::vector<double>& scores) {
  TUNE_CHECK(points.size() == scores.size());
  TUNE_CHECK(points.size() >= 4u);
  const Indices best = best_trials(scores);
  std::vector<Indices> draws;
  for (int i = 0; i < kDraws; ++i) {
    RandomStream random(0, "importance", static_cast<std::uint64_t>(i));
    draws.push_back(drawn(best.size(), points.size(), random));
  }
  std::vector<ParameterImportance> found;
  double sum = 0;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const Compared parameter(encoding, i, points);
    ParameterImportance& one = found.emplace_back();
    one.trials = parameter.active();
    one.divergence = parameter.divergence(best);
    std::vector<double> by_chance;
    for (const Indices& draw : draws) by_chance.push_back(parameter.divergence(draw));
    std::sort(by_chance.begin(), by_chance.end());
    one.chance = std::accumulate(by_chance.begin(), by_chance.end(), 0.0) / kDraws;
    const double bound = by_chance[static_cast<std::size_t>(kOutstanding * kDraws)];
    one.stands_out = one.divergence > bound;
    one.share = std::max(one.divergence - one.chance, 0.0);
    sum += one.share;
  }
  for (ParameterImportance& one : found) one.share = sum > 0 ? one.share / sum : 0;
  return found;
}

}  // namespace tune
