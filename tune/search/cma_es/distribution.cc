#include "tune/search/cma_es/distribution.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>

namespace tune::search::cma_es {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kContinuousDeviation = 1.0 / 6;
constexpr double kCellsDeviation = 1.0 / 5;
constexpr double kFirstMutationRate = 0.5 - 1e-8;
constexpr std::size_t kMostRanges = 1000;  // in what is read; there are some dozen

bool are_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

std::size_t directions_of(const Variables& variables) {
  std::size_t sum = 0;
  for (const std::uint32_t size : variables.category_sizes()) sum += size - 1;
  return sum;
}

bool chances_fit(const Distribution& distribution, const Variables& variables) {
  const auto sizes = variables.category_sizes();
  if (distribution.chances.size() != sizes.size()) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<double>& chances = distribution.chances[i];
    if (chances.size() != sizes[i] || !are_finite(chances)) return false;
    if (!std::all_of(chances.begin(), chances.end(), [](double p) { return p > 0; })) return false;
  }
  return distribution.direction.size() == directions_of(variables) &&
         are_finite(distribution.direction);
}

}  // namespace

std::uint64_t default_population(const Variables& variables) {
  const auto dimensions = static_cast<double>(std::max<std::size_t>(variables.size(), 1));
  return 4 + static_cast<std::uint64_t>(std::floor(3 * std::log(dimensions)));
}

Distribution first_distribution(const Variables& variables, std::uint64_t population) {
  const std::size_t count = variables.numbers();
  Distribution first;
  first.population = population;
  first.mean.assign(count, 0.5);
  first.covariance.assign(count * count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    double deviation = kContinuousDeviation;
    if (i >= variables.continuous()) {
      const double low = variables.in_cell(i, 0);
      const double high = variables.in_cell(i, 1);
      first.mean[i] = (low + high) / 2;
      deviation = (high - low) * kCellsDeviation;
    }
    first.covariance[i * count + i] = deviation * deviation;
  }
  first.scales.assign(count, 1);
  first.path_step.assign(count, 0);
  first.path.assign(count, 0);
  first.mutation_rates.assign(variables.in_cells(), kFirstMutationRate);
  first.mutated.assign(variables.in_cells(), 0);
  for (const std::uint32_t size : variables.category_sizes()) {
    first.chances.emplace_back(size, 1.0 / size);
  }
  first.direction.assign(directions_of(variables), 0);
  return first;
}

bool fits(const Distribution& distribution, const Variables& variables) {
  const std::size_t count = variables.numbers();
  const auto has = [](const std::vector<double>& values, std::size_t size) {
    return values.size() == size && are_finite(values);
  };
  return distribution.population >= 2 && has(distribution.mean, count) &&
         has(distribution.covariance, count * count) && has(distribution.scales, count) &&
         has(distribution.path_step, count) && has(distribution.path, count) &&
         has(distribution.mutation_rates, variables.in_cells()) &&
         distribution.mutated.size() == variables.in_cells() &&
         distribution.ranges.size() <= kMostRanges && are_finite(distribution.ranges) &&
         std::isfinite(distribution.step_size) && distribution.step_size > 0 &&
         std::isfinite(distribution.caution) && distribution.caution > 0 &&
         std::isfinite(distribution.stride) && distribution.stride > 0 &&
         std::isfinite(distribution.certainty) && chances_fit(distribution, variables);
}

Sampler::Sampler(const Distribution& distribution)
    : distribution_(distribution), root_(distribution.covariance.size()) {
  const auto count = static_cast<Eigen::Index>(distribution.mean.size());
  if (count == 0) return;
  const Eigen::Map<const RowMajor> covariance(distribution.covariance.data(), count, count);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> parts(covariance);
  Eigen::Map<RowMajor>(root_.data(), count, count) =
      parts.eigenvectors() * parts.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal();
}

Drawn Sampler::draw(RandomStream& random) const {
  const std::size_t count = distribution_.mean.size();
  std::vector<double> normals;
  for (std::size_t i = 0; i < count; ++i) normals.push_back(random.normal());
  Drawn drawn;
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < count; ++j) sum += root_[i * count + j] * normals[j];
    drawn.numbers.push_back(distribution_.mean[i] +
                            distribution_.step_size * distribution_.scales[i] * sum);
  }
  for (const std::vector<double>& chances : distribution_.chances) {
    double left = random.uniform();
    std::uint32_t option = 0;
    while (option + 1 < chances.size() && left >= chances[option]) left -= chances[option++];
    drawn.categories.push_back(option);
  }
  return drawn;
}

double largest_deviation(const Distribution& distribution, const Variables& variables) {
  const std::size_t count = distribution.mean.size();
  double largest = 0;
  for (std::size_t i = 0; i < variables.continuous(); ++i) {
    const double variance = distribution.covariance[i * count + i];
    largest = std::max(largest, distribution.step_size * std::sqrt(variance));
  }
  return largest;
}

}  // namespace tune::search::cma_es
