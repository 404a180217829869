#include "tune/search/cma_es/rates.h"
#include "tune/search/cma_es/distribution.h"

#include <algorithm>
#include <cmath>

namespace tune::search::cma_es {

namespace {

constexpr double kAlpha = 2;  // of the covariance's rates

// Of the weights in [begin, end): the square of their sum by the sum of their squares.
double effective_count(const std::vector<double>& weights, std::size_t begin, std::size_t end) {
  double sum = 0;
  double squares = 0;
  for (std::size_t i = begin; i < end; ++i) {
    sum += weights[i];
    squares += weights[i] * weights[i];
  }
  return sum * sum / squares;
}

// The bound of the negative weights' sum, so that the covariance stays one.
double negative_sum(const Rates& rates, double effective_worse) {
  if (rates.dimensions == 0) return 0;
  return std::min({1 + rates.rank_one / rates.rank_many,
                   1 + 2 * effective_worse / (rates.effective + 2),
                   (1 - rates.rank_one - rates.rank_many) / (rates.dimensions * rates.rank_many)});
}

void scale_weights(std::vector<double>& weights, double sum_below_zero) {
  double above = 0;
  double below = 0;
  for (const double weight : weights) (weight > 0 ? above : below) += std::abs(weight);
  for (double& weight : weights) weight *= weight >= 0 ? 1 / above : sum_below_zero / below;
}

}  // namespace

Rates rates_of(const Variables& variables, std::size_t population) {
  Rates rates;
  const auto d = static_cast<double>(variables.numbers());
  rates.dimensions = d;
  rates.better = population / 2;
  for (std::size_t i = 0; i < population; ++i) {
    rates.weights.push_back(std::log((static_cast<double>(population) + 1) / 2) -
                            std::log(static_cast<double>(i) + 1));
  }
  const double m = effective_count(rates.weights, 0, rates.better);
  rates.effective = m;
  rates.rank_one = kAlpha / ((d + 1.3) * (d + 1.3) + m);
  rates.rank_many = std::min(1 - rates.rank_one - kTiny,
                             kAlpha * (m - 2 + 1 / m) / ((d + 2) * (d + 2) + kAlpha * m / 2));
  scale_weights(rates.weights,
                negative_sum(rates, effective_count(rates.weights, rates.better, population)));
  if (d == 0) return rates;
  rates.step_path = (m + 2) / (d + m + 5);
  rates.step_damping = 1 + 2 * std::max(0.0, std::sqrt((m - 1) / (d + 1)) - 1) + rates.step_path;
  rates.path = (4 + m / d) / (d + 4 + 2 * m / d);
  rates.expected_length = std::sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d));
  return rates;
}

double margin_of(const Variables& variables) {
  const std::size_t count = variables.in_cells() + variables.category_sizes().size();
  return count == 0 ? 0 : 1 - std::pow(0.73, 1 / static_cast<double>(count));
}

}  // namespace tune::search::cma_es
