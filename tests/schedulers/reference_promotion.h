// ASHA by promotion written as plainly as its rules read: a rung is sorted whenever a place is
// free. The scheduler is compared with it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/trial_scheduler.h"

namespace tune::testing {

class ReferencePromotion {
 public:
  struct Options {
    std::int64_t numerator = 3;  // the factor as a fraction
    std::int64_t denominator = 1;
    double grace = 1;
    double max_t = 100;
    std::size_t brackets = 1;
    Mode mode = Mode::kMax;
    std::size_t min_rung_size = 1;
    bool stop_last_trials = true;
    std::size_t open_after = 0;
    bool open_silent = true;
  };

  explicit ReferencePromotion(Options options) : options_(options) {
    const double factor =
        static_cast<double>(options.numerator) / static_cast<double>(options.denominator);
    double first = options.grace;
    for (std::size_t s = 0; s < options.brackets; ++s, first *= factor) {
      brackets_.emplace_back();
      for (double at = first; at <= options.max_t; at *= factor) {
        brackets_.back().push_back({at, {}});
      }
    }
  }

  const Options& options() const { return options_; }
  double milestone(std::size_t bracket, std::size_t rung) const {
    return brackets_[bracket][rung].milestone;
  }
  // Of a new trial, or one that ended in an error.
  void add(std::uint32_t trial, std::size_t bracket) {
    trials_[trial].bracket = bracket;
    trials_[trial].is_over = false;
    pass_open_rungs(trials_[trial]);
  }

  enum class Answer { kContinue, kPause, kStop };
  Answer result(std::uint32_t trial, double time, std::optional<double> value) {
    if (!value) return Answer::kContinue;
    if (options_.stop_last_trials && time >= options_.max_t) return Answer::kStop;
    State& state = trials_[trial];
    std::vector<Rung>& rungs = brackets_[state.bracket];
    const bool had_paused = state.waits;
    for (std::size_t k = state.recorded; k < rungs.size() && rungs[k].milestone <= time; ++k) {
      rungs[k].entries.push_back({signed_value(*value), trial});
      state.recorded = k + 1;
      state.waits = true;
    }
    open(rungs);
    const bool is_at_rung = had_paused || state.waits;
    if (!is_at_rung) return Answer::kContinue;
    if (std::isnan(*value)) return Answer::kStop;
    return Answer::kPause;
  }
  void end(std::uint32_t trial, bool is_error, double time, std::optional<double> value) {
    State& state = trials_[trial];
    state.is_over = true;
    if (is_error) return;
    state.waits = false;
    std::vector<Rung>& rungs = brackets_[state.bracket];
    std::size_t reached = state.recorded;
    while (reached < rungs.size() && rungs[reached].milestone <= time) ++reached;
    if (!value || reached == state.recorded) return;
    rungs[reached - 1].entries.push_back({signed_value(*value), trial});
    state.recorded = reached;
    open(rungs);
  }
  void resume(std::uint32_t trial) {
    trials_[trial].waits = false;
    pass_open_rungs(trials_[trial]);
  }

  // Among those for which `is_there` holds.
  std::optional<std::uint32_t> promotable(const std::function<bool(std::uint32_t)>& is_there) {
    struct Place {
      double milestone;
      std::size_t bracket, rung;
    };
    std::vector<Place> places;
    for (std::size_t s = 0; s < brackets_.size(); ++s) {
      for (std::size_t k = 0; k < brackets_[s].size(); ++k) {
        places.push_back({brackets_[s][k].milestone, s, k});
      }
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.milestone > b.milestone; });
    for (const auto& [milestone, bracket, rung] : places) {
      for (const std::uint32_t trial : best(brackets_[bracket], rung)) {
        const State& state = trials_[trial];
        const bool is_here = state.waits && !state.is_over && state.recorded == rung + 1;
        if (is_here && is_there(trial)) return trial;
      }
    }
    return std::nullopt;
  }

 private:
  struct Entry {
    double value;
    std::uint32_t trial;
  };
  struct Rung {
    double milestone;
    std::vector<Entry> entries;  // as they came
    bool is_open = false;
  };
  struct State {
    std::size_t bracket = 0;
    std::size_t recorded = 0;
    bool waits = false;
    bool is_over = false;
  };

  void pass_open_rungs(State& state) const {
    const std::vector<Rung>& rungs = brackets_[state.bracket];
    while (!state.waits && state.recorded < rungs.size() && rungs[state.recorded].is_open) {
      ++state.recorded;
    }
  }

  double signed_value(double value) const { return options_.mode == Mode::kMax ? value : -value; }

  // The lowest rung opens when the top one has open_after values, the next with factor times as
  // many; or when those below are open and its values do not order the next one's.
  void open(std::vector<Rung>& rungs) const {
    for (std::size_t rung = 0; rung + 1 < rungs.size(); ++rung) {
      const bool opens =
          rungs[rung].is_open || has_enough_at_top(rungs, rung) ||
          (options_.open_silent && options_.open_after > 0 && rung + 2 < rungs.size() &&
           is_silent(rungs[rung].entries, rungs[rung + 1].entries));
      if (!opens) return;
      rungs[rung].is_open = true;
    }
  }

  // NaN is as bad as any other NaN, and worse than all else.
  static int order(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return (std::isnan(b) ? 1 : 0) - (std::isnan(a) ? 1 : 0);
    return a < b ? -1 : a > b ? 1 : 0;
  }

  static bool is_silent(const std::vector<Entry>& low, const std::vector<Entry>& high) {
    double n = 0, sum = 0;
    for (const Entry& a : low) {
      for (const Entry& later_a : high) {
        if (a.trial != later_a.trial) continue;
        ++n;
        for (const Entry& b : low) {
          for (const Entry& later_b : high) {
            if (b.trial != later_b.trial) continue;
            sum += order(a.value, b.value) * order(later_a.value, later_b.value);
          }
        }
      }
    }
    const bool is_judged = n >= 8 && high.size() <= 60;
    return is_judged &&
           sum / (n * (n - 1)) + 1.5 * std::sqrt(2 * (2 * n + 5) / (9 * n * (n - 1))) < 0.55;
  }

  bool has_enough_at_top(const std::vector<Rung>& rungs, std::size_t rung) const {
    const double factor =
        static_cast<double>(options_.numerator) / static_cast<double>(options_.denominator);
    return options_.open_after > 0 && rung + 1 < rungs.size() &&
           static_cast<double>(rungs.back().entries.size()) >=
               static_cast<double>(options_.open_after) *
                   std::pow(factor, static_cast<double>(rung));
  }

  std::vector<std::uint32_t> best(const std::vector<Rung>& rungs, std::size_t rung) const {
    std::vector<Entry> entries = rungs[rung].entries;
    const auto n = static_cast<std::int64_t>(entries.size());
    std::int64_t places = n * options_.denominator / options_.numerator;
    if (entries.size() < options_.min_rung_size) places = 0;
    if (rungs[rung].is_open) places = n;
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      if (std::isnan(b.value)) return !std::isnan(a.value);
      return a.value > b.value;
    });
    std::vector<std::uint32_t> trials;
    for (std::int64_t i = 0; i < places; ++i) {
      trials.push_back(entries[static_cast<std::size_t>(i)].trial);
    }
    return trials;
  }

  Options options_;
  std::vector<std::vector<Rung>> brackets_;
  std::map<std::uint32_t, State> trials_;
};

}  // namespace tune::testing
