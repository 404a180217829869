#include "tune/search/cma_es/categories.h"
#include "tune/search/cma_es/distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tune::search::cma_es {

namespace {

constexpr double kSignalToNoise = 1.5;

using Gradients = std::vector<std::vector<double>>;  // by category, then by option

Gradients natural_gradients(const Distribution& distribution, const std::vector<Judged>& sorted,
                            const Rates& rates) {
  Gradients gradients;
  for (std::size_t c = 0; c < distribution.chances.size(); ++c) {
    const std::vector<double>& chances = distribution.chances[c];
    std::vector<double> gradient(chances.size(), 0);
    for (std::size_t i = 0; i < rates.better; ++i) {
      for (std::size_t option = 0; option < chances.size(); ++option) {
        const double taken = sorted[i].drawn.categories[c] == option ? 1 : 0;
        gradient[option] += rates.weights[i] * (taken - chances[option]);
      }
    }
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

// By the square root of Fisher's information: what is of length 1 is equally far everywhere.
std::vector<double> scaled(const Distribution& distribution, const Gradients& gradients) {
  std::vector<double> scaled;
  for (std::size_t c = 0; c < gradients.size(); ++c) {
    const std::vector<double>& chances = distribution.chances[c];
    const std::vector<double>& gradient = gradients[c];
    const double last = chances.back();
    const double sum = std::accumulate(gradient.begin(), gradient.end() - 1, 0.0);
    for (std::size_t option = 0; option + 1 < chances.size(); ++option) {
      const double root = std::sqrt(chances[option]);
      scaled.push_back(gradient[option] / root + root * sum / (last + std::sqrt(last)));
    }
  }
  return scaled;
}

double square_of(const std::vector<double>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

void adapt_caution(Distribution& distribution, const std::vector<double>& gradient, double length) {
  const double rate =
      1 / distribution.caution / std::sqrt(static_cast<double>(distribution.direction.size()));
  const double inertia = std::sqrt(rate * (2 - rate));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double& along = distribution.direction[i];
    along = (1 - rate) * along + inertia * gradient[i] / length;
  }
  distribution.certainty = (1 - rate) * (1 - rate) * distribution.certainty + rate * (2 - rate);
  distribution.caution *= std::exp(
      rate * (distribution.certainty - square_of(distribution.direction) / kSignalToNoise));
}

void keep_least(std::vector<double>& chances, double margin) {
  const auto count = static_cast<double>(chances.size());
  const double least = margin / (count - 1);
  for (double& chance : chances) chance = std::max(chance, least);
  const double sum = std::accumulate(chances.begin(), chances.end(), 0.0);
  const double spare = sum - least * count;
  for (double& chance : chances) chance -= (sum - 1) * (chance - least) / spare;
  const double rest = std::accumulate(chances.begin(), chances.end(), 0.0);
  for (double& chance : chances) chance /= rest;
}

}  // namespace

void update_chances(Distribution& distribution, const std::vector<Judged>& sorted,
                    const Rates& rates, double margin) {
  const Gradients gradients = natural_gradients(distribution, sorted, rates);
  const std::vector<double> gradient = scaled(distribution, gradients);
  const double length = std::sqrt(square_of(gradient));
  if (!(length > 0)) return;
  const double step = distribution.stride / (length + kTiny);
  for (std::size_t c = 0; c < gradients.size(); ++c) {
    for (std::size_t option = 0; option < gradients[c].size(); ++option) {
      distribution.chances[c][option] += step * gradients[c][option];
    }
  }
  distribution.stride = 1 / distribution.caution;
  adapt_caution(distribution, gradient, length);
  for (std::vector<double>& chances : distribution.chances) keep_least(chances, margin);
}

}  // namespace tune::search::cma_es
