#include "tune/search/cma_es/warm_start.h"

#include <algorithm>

#include "core/error.h"

namespace tune::search::cma_es {

namespace {

constexpr double kAround = 0.1;  // standard deviation of those around each

}  // namespace

std::size_t best_of_earlier(std::size_t results) {
  if (results < kFewestToBegin) return 0;
  return std::max((results + 9) / 10, kFewestToBegin);
}

Distribution begun_around(const std::vector<Drawn>& best, Distribution first) {
  TUNE_CHECK(best.size() >= kFewestToBegin);
  const auto count = static_cast<double>(best.size());
  const std::size_t numbers = first.mean.size();
  std::fill(first.mean.begin(), first.mean.end(), 0.0);
  for (const Drawn& one : best) {
    for (std::size_t i = 0; i < numbers; ++i) first.mean[i] += one.numbers[i] / count;
  }
  for (std::size_t i = 0; i < numbers; ++i) {
    double& variance = first.covariance[i * numbers + i];
    variance = std::min(variance, kAround * kAround);
  }
  for (const Drawn& one : best) {
    for (std::size_t i = 0; i < numbers; ++i) {
      for (std::size_t j = 0; j < numbers; ++j) {
        first.covariance[i * numbers + j] +=
            (one.numbers[i] - first.mean[i]) * (one.numbers[j] - first.mean[j]) / count;
      }
    }
  }
  for (std::size_t category = 0; category < first.chances.size(); ++category) {
    std::vector<double>& chances = first.chances[category];
    const double all = count + static_cast<double>(chances.size());
    std::fill(chances.begin(), chances.end(), 1 / all);
    for (const Drawn& one : best) chances[one.categories[category]] += 1 / all;
  }
  return first;
}

}  // namespace tune::search::cma_es
