// A custom scheduler: schedulers/README.md shows it whole.
#pragma once

#include <tune/tune.h>

#include <algorithm>
#include <cmath>
#include <vector>

// Stops a trial whose metric is worse than the median of what trials before it had at the same
// step.
class MedianStopping : public tune::TrialScheduler {
 public:
  explicit MedianStopping(std::size_t min_trials) : min_trials_(min_trials) {}

  void configure(const tune::Objective& experiment) override { objective_ = experiment; }
  tune::Objective objective() const override { return objective_; }
  tune::Milestone add_trial(tune::TrialNumber) override { return {"training_iteration", 1}; }

  tune::Decision result(tune::TrialNumber, const tune::ResultView& result) override {
    const double value = result.number(objective_.metric).value_or(std::nan(""));
    const double score = objective_.mode == tune::Mode::kMax ? value : -value;
    scores_.resize(std::max(scores_.size(), result.iteration() + 1));
    std::vector<double>& others = scores_[result.iteration()];
    const auto better = std::ranges::count_if(others, [&](double other) { return other > score; });
    const bool stops = others.size() >= min_trials_ && 2 * better > std::ssize(others);
    others.push_back(score);
    if (stops) return tune::Decision::stop("most trials before it were better at this step");
    return tune::Decision::go_on({"training_iteration", result.iteration() + 1.0});
  }
  void end_trial(tune::TrialNumber, tune::TrialEnd, const tune::Reported*) override {}

  std::vector<std::string> status_lines() const override { return {"Using median stopping"}; }
  std::string save() const override { return tune::encoded(scores_); }
  void restore(std::string_view state) override { scores_ = tune::decoded<Scores>(state); }

 private:
  using Scores = std::vector<std::vector<double>>;  // by step
  std::size_t min_trials_;
  tune::Objective objective_;
  Scores scores_;
};
