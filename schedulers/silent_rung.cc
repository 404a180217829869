#include "schedulers/silent_rung.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tune {

namespace {

int order(double a, double b) {
  return is_worse(a, b) ? -1 : is_worse(b, a) ? 1 : 0;
}

std::vector<std::pair<double, double>> values_at_both(const PromotionRung& rung,
                                                      const PromotionRung& next) {
  std::map<TrialNumber, double> later;
  for (const auto* part : {&next.best(), &next.others()}) {
    for (const RungEntry& entry : *part) later[entry.trial] = entry.value;
  }
  std::vector<std::pair<double, double>> pairs;
  for (const auto* part : {&rung.best(), &rung.others()}) {
    for (const RungEntry& entry : *part) {
      const auto found = later.find(entry.trial);
      if (found != later.end()) pairs.emplace_back(entry.value, found->second);
    }
  }
  return pairs;
}

// Of tau, where the orders are independent.
double standard_deviation(double pairs) {
  return std::sqrt(2 * (2 * pairs + 5) / (9 * pairs * (pairs - 1)));
}

}  // namespace

double kendalls_tau(const std::vector<std::pair<double, double>>& pairs) {
  int agreeing = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      agreeing += order(pairs[i].first, pairs[j].first) * order(pairs[i].second, pairs[j].second);
    }
  }
  const auto count = static_cast<double>(pairs.size());
  return 2 * agreeing / (count * (count - 1));
}

bool is_silent(const PromotionRung& rung, const PromotionRung& next) {
  if (next.size() < kFewestPairs || next.size() > kMostPairs) return false;
  const auto pairs = values_at_both(rung, next);
  if (pairs.size() < kFewestPairs) return false;
  const double deviation = standard_deviation(static_cast<double>(pairs.size()));
  return kendalls_tau(pairs) + kDeviations * deviation < kFewestAgree;
}

}  // namespace tune
