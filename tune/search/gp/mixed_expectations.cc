#include "tune/search/gp/mixed_expectations.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tune::search::gp {

namespace {

Expectation mixed_at(const std::vector<std::vector<Expectation>>& by_model, std::size_t point) {
  const auto count = static_cast<double>(by_model.size());
  double mean = 0;
  double square = 0;
  double top = by_model.front()[point].acquisition;
  for (const auto& each : by_model) {
    const Expectation& at = each[point];
    mean += at.mean / count;
    square += (at.mean * at.mean + at.standard_deviation * at.standard_deviation) / count;
    top = std::max(top, at.acquisition);
  }
  double sum = 0;
  for (const auto& each : by_model) sum += std::exp(each[point].acquisition - top);
  const double variance = std::max(square - mean * mean, 0.0);
  return {mean, std::sqrt(variance), top + std::log(sum / count)};
}

}  // namespace

std::vector<Expectation> mixed(const std::vector<std::vector<Expectation>>& by_model) {
  if (by_model.size() == 1) return by_model.front();
  std::vector<Expectation> all;
  for (std::size_t i = 0; i < by_model.front().size(); ++i) all.push_back(mixed_at(by_model, i));
  return all;
}

}  // namespace tune::search::gp
