#include "tune/simulate/dominated_share.h"

#include <algorithm>
#include <cstddef>

namespace tune {

namespace {

// By their first `count` coordinates.
double share(std::vector<const double*> points, std::size_t count) {
  if (points.empty()) return 0;
  if (count == 1) {
    const auto less = [](const double* a, const double* b) { return *a < *b; };
    return 1 - **std::min_element(points.begin(), points.end(), less);
  }
  const std::size_t last = count - 1;
  std::sort(points.begin(), points.end(),
            [last](const double* a, const double* b) { return a[last] < b[last]; });
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double next = i + 1 < points.size() ? points[i + 1][last] : 1;
    const double height = next - points[i][last];
    if (height > 0) sum += height * share({points.begin(), points.begin() + i + 1}, last);
  }
  return sum;
}

}  // namespace

double dominated_share(std::vector<std::vector<double>> points) {
  std::vector<const double*> within;
  std::size_t count = 1;
  for (std::vector<double>& point : points) {
    count = point.size();
    if (!std::ranges::all_of(point, [](double one) { return one < 1; })) continue;
    for (double& one : point) one = std::max(one, 0.0);
    within.push_back(point.data());
  }
  return share(std::move(within), count);
}

}  // namespace tune
