// ASHA written as plainly as its rules read: sorted lists, fractions of whole numbers, no
// cleverness. The scheduler is compared with it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/asha.h"

namespace tune::testing {

class ReferenceAsha {
 public:
  struct Options {
    std::int64_t numerator = 4;  // the factor as a fraction
    std::int64_t denominator = 1;
    std::int64_t grace_halves = 2;  // the grace period, in halves
    std::int64_t max_t = 100;
    bool stop_last_trials = true;
    Mode mode = Mode::kMax;
    AshaRule rule = AshaRule::kRay;
    std::size_t min_rung_size = 1;
  };

  // Rungs at grace * factor^k up to max_t, as fractions of whole numbers: nothing is rounded before
  // the last division, which is exact where the denominator is a power of two.
  explicit ReferenceAsha(Options options) : options_(std::move(options)) {
    std::int64_t above = options_.grace_halves;
    std::int64_t below = 2;
    while (above <= options_.max_t * below) {
      rungs_.push_back({static_cast<double>(above) / static_cast<double>(below), {}, {}});
      above *= options_.numerator;
      below *= options_.denominator;
    }
  }

  std::vector<double> milestones() const {
    std::vector<double> all;
    for (const Rung& rung : rungs_) all.push_back(rung.milestone);
    return all;
  }

  // Whether the trial stops.
  bool result(std::uint32_t trial, double time, std::optional<double> reported) {
    if (!reported) return false;
    if (options_.stop_last_trials && time >= static_cast<double>(options_.max_t)) return true;
    Rung* rung = highest_without(trial, time);
    if (rung == nullptr) return false;
    const double value = good(*reported);
    const bool stops = judge(*rung, value, std::isnan(*reported));
    for (Rung& lower : rungs_) {
      if (lower.milestone <= rung->milestone && !lower.trials.contains(trial)) {
        lower.trials.insert(trial);
        lower.values.push_back(value);
      }
    }
    return stops;
  }

  void complete(std::uint32_t trial, double time, std::optional<double> reported) {
    Rung* rung = highest_without(trial, time);
    if (!reported || rung == nullptr) return;
    rung->trials.insert(trial);
    rung->values.push_back(good(*reported));
  }

 private:
  struct Rung {
    double milestone;
    std::set<std::uint32_t> trials;
    std::vector<double> values;
  };

  // Larger is better, NaN as bad as can be.
  double good(double value) const {
    if (std::isnan(value)) return -std::numeric_limits<double>::infinity();
    return options_.mode == Mode::kMax ? value : -value;
  }

  Rung* highest_without(std::uint32_t trial, double time) {
    Rung* highest = nullptr;
    for (Rung& rung : rungs_) {
      if (rung.milestone <= time && !rung.trials.contains(trial)) highest = &rung;
    }
    return highest;
  }

  bool judge(const Rung& rung, double value, bool is_nan) const {
    if (rung.values.empty() || rung.values.size() < options_.min_rung_size) return false;
    if (is_nan) return true;
    if (options_.rule == AshaRule::kRay) return value < percentile(rung.values);
    const auto n = static_cast<std::int64_t>(rung.values.size()) + 1;
    const std::int64_t keep =
        std::max<std::int64_t>(n * options_.denominator / options_.numerator, 1);
    std::int64_t rank = 1;
    for (double other : rung.values) rank += other > value ? 1 : 0;
    return rank > keep;
  }

  double percentile(std::vector<double> values) const {
    std::sort(values.begin(), values.end());
    const auto n = static_cast<std::int64_t>(values.size());
    const std::int64_t p = (n - 1) * (options_.numerator - options_.denominator);
    const std::int64_t whole = p / options_.numerator;
    const std::int64_t rest = p % options_.numerator;
    const double a = values[static_cast<std::size_t>(whole)];
    if (rest == 0) return a;
    const double b = values[static_cast<std::size_t>(whole) + 1];
    if (a == b) return a;
    if (std::isinf(a)) return 2 * rest >= options_.numerator ? b : a;
    return a + (b - a) * (static_cast<double>(rest) / static_cast<double>(options_.numerator));
  }

  Options options_;
  std::vector<Rung> rungs_;
};

}  // namespace tune::testing
