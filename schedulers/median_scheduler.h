// The scheduler behind tune::median_stopping (schedulers/median_stopping.h has the contract).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "schedulers/median_stopping.h"
#include "schedulers/metric_scheduler.h"
#include "schedulers/rung.h"

namespace tune {

class MedianScheduler : public MetricScheduler {
 public:
  explicit MedianScheduler(MedianStoppingOptions options);  // checked by median_stopping()

  Milestone add_trial(TrialNumber trial) override;
  Decision result(TrialNumber trial, const ResultView& result) override;
  void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) override;
  bool takes_several_objectives() const override { return options_.rule == MedianRule::kMean; }
  std::vector<std::string> status_lines() const override;
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  struct TrialState {
    std::uint64_t seen = 0;   // the iteration of the newest report that counts
    std::uint64_t count = 0;  // of the values in the mean
    double sum = 0;
    double best = std::nan("");
    std::uint32_t steps = 0;  // those that hold its mean, from the first
    MeritNumbers sums = {};   // in place of the sum, where values are merits
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.seen, s.count, s.sum, s.best, s.steps);
      f.added(s.sums);
    }
  };

  TrialState& state_of(TrialNumber trial);
  double step(std::size_t index);  // makes it when it is the first to be asked for
  Milestone next_stop(const TrialState& state);
  bool take(TrialState& state, const ResultView& result);
  Decision judge(TrialState& state, double time);
  Decision judge_merit(TrialState& state, double time);
  Merit mean_merit(const TrialState& state) const;
  std::string stop_reason(double value, const Rung& rung) const;

  MedianStoppingOptions options_;
  CutOffPosition position_;
  std::vector<Rung> steps_;         // with a value each, but perhaps the last ones
  std::vector<Fronts> fronts_;      // beside them, where values are merits
  std::vector<TrialState> trials_;  // by number
  std::uint64_t stopped_ = 0;
};

}  // namespace tune
