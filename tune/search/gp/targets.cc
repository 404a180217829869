#include "tune/search/gp/targets.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "tune/search/normal_distribution.h"

namespace tune::search::gp {

namespace {

double rung_of(const ValueAt& result) {
  return std::log(std::max(1.0, static_cast<double>(result.iteration))) / std::log(kRungFactor);
}

// The share of `values` that are worse, equal ones counted by half.
double rank_among(double value, const std::vector<double>& values) {
  double worse = 0;
  for (const double other : values) worse += other < value ? 1 : other == value ? 0.5 : 0;
  return worse / static_cast<double>(values.size());
}

// The rungs that each trial reached.
std::vector<double> reached_rungs(const std::vector<Observation>& observations) {
  std::vector<double> rungs;
  for (const Observation& each : observations) rungs.push_back(rung_of(each.result));
  const std::vector<double> own = rungs;
  const double top = *std::max_element(own.begin(), own.end());
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (!observations[i].completed || own[i] == top) continue;
    bool is_best = true;
    for (std::size_t j = 0; j < rungs.size() && is_best; ++j) {
      is_best = own[j] <= own[i] || observations[j].result.value <= observations[i].result.value;
    }
    if (is_best) rungs[i] = top;
  }
  return rungs;
}

std::vector<double> ranked_within_rungs(const std::vector<Observation>& observations) {
  const std::vector<double> rungs = reached_rungs(observations);
  std::vector<double> scores;
  std::vector<double> beside;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    beside.clear();
    for (std::size_t j = 0; j < rungs.size(); ++j) {
      if (std::abs(rungs[j] - rungs[i]) <= 0.5) beside.push_back(observations[j].result.value);
    }
    scores.push_back(rungs[i] + rank_among(observations[i].result.value, beside));
  }
  return scores;
}

std::vector<double> normal_scores(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> scores;
  for (const double value : values) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
    const auto worse = static_cast<double>(first - sorted.begin());
    const auto alike = static_cast<double>(last - first);
    scores.push_back(normal_quantile((worse + alike / 2) / count));
  }
  return scores;
}

}  // namespace

std::vector<double> targets_of(const std::vector<Observation>& observations) {
  if (observations.empty()) return {};
  // The best that all have in common says nothing, however far each got.
  if (std::all_of(observations.begin(), observations.end(), [&](const Observation& each) {
        return each.result.value == observations.front().result.value;
      })) {
    return {};
  }
  std::vector<double> scores = normal_scores(ranked_within_rungs(observations));
  const auto count = static_cast<double>(scores.size());
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / count;
  double variance = 0;
  for (const double score : scores) variance += (score - mean) * (score - mean) / count;
  if (!(variance > 0)) return {};
  for (double& score : scores) score = (score - mean) / std::sqrt(variance);
  return scores;
}

}  // namespace tune::search::gp
