// A custom searcher: tune/README.md shows it whole.
#pragma once

#include <tune/tune.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

// Proposes `x` around the best one so far, ever nearer to it.
class HillClimbing : public tune::Searcher {
 public:
  explicit HillClimbing(double start) : state_{.best = start} {}

  void configure(const tune::SearcherSetup& setup) override {
    objective_ = setup.objective;
    state_.num_samples = setup.num_samples;
  }
  void set_num_samples(std::int64_t count) override { state_.num_samples = count; }
  std::optional<std::uint64_t> total() const override {
    if (state_.num_samples < 0) return std::nullopt;  // no end
    return state_.num_samples;
  }

  std::optional<tune::Config> suggest(tune::TrialNumber trial) override {
    if (total() && trial.value >= *total()) return std::nullopt;
    std::mt19937_64 random(objective_.seed + trial.value);  // no state beside save()'s
    const double step = std::normal_distribution()(random) / std::sqrt(1.0 + trial.value);
    state_.proposed.push_back(state_.best + step);
    return tune::Config{{"x", state_.proposed.back()}};
  }
  void end_trial(tune::TrialNumber trial, tune::TrialEnd, const tune::Reported* last) override {
    if (last == nullptr) return;  // it never reported
    const double value = tune::ResultView(*last).number(objective_.metric).value_or(std::nan(""));
    const double score = objective_.mode == tune::Mode::kMax ? value : -value;
    if (!(score > state_.best_score)) return;
    state_.best_score = score;
    state_.best = state_.proposed[trial.value];
  }
  std::string save() const override { return tune::encoded(state_); }
  void restore(std::string_view state) override { state_ = tune::decoded<State>(state); }

 private:
  struct State {
    double best = 0;
    double best_score = -std::numeric_limits<double>::infinity();
    std::int64_t num_samples = 0;
    std::vector<double> proposed = {};
    static void fields(auto& state, auto& f) {
      f(state.best, state.best_score, state.num_samples, state.proposed);
    }
  };
  tune::Objective objective_;
  State state_;
};
