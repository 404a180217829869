// The scheduler behind tune::asha by stopping (schedulers/asha.h has the contract).
#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/asha.h"
#include "schedulers/asha_brackets.h"
#include "schedulers/metric_scheduler.h"
#include "schedulers/rung.h"

namespace tune {

class AshaScheduler : public MetricScheduler {
 public:
  explicit AshaScheduler(AshaOptions options);  // checked by asha()

  Milestone add_trial(TrialNumber trial) override;
  Decision result(TrialNumber trial, const ResultView& result) override;
  void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) override;
  bool takes_several_objectives() const override { return true; }
  std::optional<double> max_t() const override;
  std::vector<std::string> status_lines() const override;
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  struct TrialState {
    std::uint32_t bracket = 0;
    std::uint32_t recorded = 0;  // rungs of the bracket, from the lowest, that are behind it
  };

  std::optional<double> next_stop(const TrialState& state) const;
  std::uint32_t reached(const TrialState& state, double time) const;
  Decision judge(TrialState& state, std::uint32_t upto, double value);
  RungPlace place(double value, std::optional<double> cut_off, const Rung& rung,
                  std::size_t rank) const;
  Decision judge(TrialState& state, std::uint32_t upto, const Merit& merit);
  std::size_t places(std::size_t others) const;
  std::string stop_reason(double value, double cut_off, std::size_t others,
                          double milestone) const;
  TrialState& state_of(TrialNumber trial);

  AshaOptions options_;
  BracketDraw draw_;
  CutOffPosition position_;
  std::vector<std::vector<Rung>> brackets_;  // rungs from low to high
  std::vector<std::vector<Fronts>> fronts_;        // beside them, where values are merits
  std::vector<TrialState> trials_;           // by number
  std::uint64_t stopped_ = 0;
};

}  // namespace tune
