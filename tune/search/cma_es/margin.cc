#include "tune/search/cma_es/margin.h"

#include <algorithm>
#include <cmath>

#include "tune/search/cma_es/distribution.h"
#include "tune/search/cma_es/rates.h"
#include "tune/search/normal_distribution.h"

namespace tune::search::cma_es {

namespace {

// Beyond so many standard deviations lies a share of p.
double quantile_above(double p) {
  return -normal_quantile(p);
}

// One number in cells over the better half of a population.
void centre_number(std::vector<Judged>& sorted, std::size_t better, double middle,
                   const Variables& variables, std::size_t number, std::uint8_t& mutated) {
  std::vector<double> old;
  double bias = 0;
  double room_above = 0;  // how far those in the mean's cell could move to its middle
  double room_below = 0;
  for (std::size_t i = 0; i < better; ++i) {
    double& value = sorted[i].drawn.numbers[number];
    old.push_back(value);
    const double cell = variables.in_cell(number, value);
    if (cell == middle) {
      (cell > value ? room_above : room_below) += cell - value;
    } else {
      mutated = 1;
      bias += cell - value;
      value = cell;
    }
  }
  double share = 0;
  if (bias * room_above < 0) share = std::min(1.0, -bias / room_above);
  if (bias * room_below < 0) share = std::min(1.0, -bias / room_below);
  for (std::size_t i = 0; i < better; ++i) {
    double& value = sorted[i].drawn.numbers[number];
    const double way = variables.in_cell(number, old[i]) - old[i];
    if (variables.in_cell(number, value) == middle && bias * way < 0) value += share * way;
  }
}

// One number in cells as the margin sees it.
struct Marginal {
  double& mean;
  double& scale;
  double& rate;
  bool mutated;
  double step;  // the standard deviation but for the scale
  double least;
};

// The mean is beyond the last threshold: one side has all other cells.
void correct_at_end(Marginal& at, const Thresholds& thresholds, double cell, double outer_chance) {
  const double edge = thresholds.above;
  double chance = std::max(outer_chance, at.least);
  if (!at.mutated) chance = std::min(chance, at.rate);
  chance = std::clamp(chance, kTiny, 0.5 - kTiny);
  const double wide = std::abs(cell - edge) / (at.step * quantile_above(at.least));
  at.scale = std::max(at.scale, wide);
  const double side = at.mean > edge ? 1 : at.mean < edge ? -1 : 0;
  at.mean = edge + side * at.step * at.scale * quantile_above(chance);
  at.rate = chance;
}

void correct_between(Marginal& at, const Thresholds& thresholds, double below, double above) {
  double inside = 1 - (below + above);
  below = std::max(below, at.least / 2);
  above = std::max(above, at.least / 2);
  if (!at.mutated) inside = std::max(inside, 1 - at.rate);
  // The excess of the three over 1 is taken off where there is more than the least.
  const double sum = below + above + inside;
  const double spare = at.mutated ? sum - 1.5 * at.least : sum - at.least - (1 - at.rate);
  const double change = (1 - sum) / spare;
  below += change * (below - at.least / 2);
  above += change * (above - at.least / 2);
  below = std::clamp(below, kTiny, 0.5 - kTiny);
  above = std::clamp(above, kTiny, 0.5 - kTiny);
  const double of_below = quantile_above(below);
  const double of_above = quantile_above(above);
  at.scale = (thresholds.above - thresholds.below) / ((of_below + of_above) * at.step);
  at.mean = (thresholds.below * of_above + thresholds.above * of_below) / (of_below + of_above);
  at.rate = below + above;
}

}  // namespace

void centre(std::vector<Judged>& sorted, Distribution& distribution, const Variables& variables,
            std::size_t better) {
  for (std::size_t i = 0; i < variables.in_cells(); ++i) {
    const std::size_t number = variables.continuous() + i;
    distribution.mutated[i] = 0;
    const double middle = variables.in_cell(number, distribution.mean[number]);
    centre_number(sorted, better, middle, variables, number, distribution.mutated[i]);
  }
}

void correct_margin(Distribution& distribution, const Variables& variables) {
  const std::size_t count = variables.numbers();
  for (std::size_t i = 0; i < variables.in_cells(); ++i) {
    const std::size_t number = variables.continuous() + i;
    const double step =
        distribution.step_size * std::sqrt(distribution.covariance[number * count + number]);
    Marginal at = {distribution.mean[number],
                   distribution.scales[number],
                   distribution.mutation_rates[i],
                   distribution.mutated[i] != 0,
                   step,
                   margin_of(variables)};
    const Thresholds thresholds = variables.thresholds(number, at.mean);
    const double deviation = step * at.scale;
    const double below = normal_cdf((thresholds.below - at.mean) / deviation);
    const double above = 1 - normal_cdf((thresholds.above - at.mean) / deviation);
    if (std::max(below, above) > 0.5) {
      correct_at_end(at, thresholds, variables.in_cell(number, at.mean), std::min(below, above));
    } else {
      correct_between(at, thresholds, below, above);
    }
  }
}

}  // namespace tune::search::cma_es
