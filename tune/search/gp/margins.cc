#include "tune/search/gp/margins.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace tune::search::gp {

namespace {

constexpr double kFarthest = 10;  // in medians

// The median of how far they are from the bound; those at the bound do not count.
double median_distance(const std::vector<double>& margins) {
  std::vector<double> distances;
  for (const double margin : margins) {
    if (margin != 0 && std::isfinite(margin)) distances.push_back(std::abs(margin));
  }
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

double bent(double margin, double median) {
  if (!std::isfinite(margin)) return -std::log1p(kFarthest);
  return std::copysign(std::log1p(std::min(std::abs(margin) / median, kFarthest)), margin);
}

// Nothing seen at the bound itself: 0.
double bound_of(const std::vector<double>& margins, double median) {
  if (std::ranges::find(margins, 0.0) == margins.end()) return 0;
  double best_broken = -std::numeric_limits<double>::infinity();
  for (const double margin : margins) {
    if (margin < 0) best_broken = std::max(best_broken, margin);
  }
  return bent(best_broken, median) / 2;
}

}  // namespace

MarginTargets margin_targets(const std::vector<double>& margins) {
  const double median = median_distance(margins);
  MarginTargets made;
  for (const double margin : margins) made.targets.push_back(bent(margin, median));
  const auto count = static_cast<double>(margins.size());
  const double mean = std::accumulate(made.targets.begin(), made.targets.end(), 0.0) / count;
  double variance = 0;
  for (const double target : made.targets) variance += (target - mean) * (target - mean) / count;
  const bool differ = std::ranges::any_of(
      made.targets, [&](double target) { return target != made.targets.front(); });
  if (!differ || !(variance > 0)) return {};
  const double deviation = std::sqrt(variance);
  for (double& target : made.targets) target = (target - mean) / deviation;
  made.bound = (bound_of(margins, median) - mean) / deviation;
  return made;
}

}  // namespace tune::search::gp
