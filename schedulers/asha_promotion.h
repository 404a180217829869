// The scheduler behind tune::asha by promotion (schedulers/asha.h has the contract).
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "schedulers/asha.h"
#include "schedulers/asha_brackets.h"
#include "schedulers/metric_scheduler.h"
#include "schedulers/promotion_rung.h"

namespace tune {

class AshaPromotion : public MetricScheduler {
 public:
  explicit AshaPromotion(AshaOptions options);  // checked by asha()

  Milestone add_trial(TrialNumber trial) override;
  Decision result(TrialNumber trial, const ResultView& result) override;
  Milestone resume_trial(TrialNumber trial) override;
  void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) override;
  std::optional<TrialNumber> choose(const Candidates& candidates) const override;
  bool resumed_first() const override { return true; }
  bool pauses() const override { return true; }
  bool takes_several_objectives() const override { return true; }
  std::optional<double> max_t() const override;
  std::vector<std::string> status_lines() const override;
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  struct TrialState {
    RungEntry entry;  // at the highest rung that is behind it
    std::uint32_t bracket = 0;
    // Rungs of the bracket, from the lowest, that are behind it: recorded there, or passed open.
    std::uint32_t recorded = 0;
    bool waits = false;  // at that rung: it was not promoted from there
    bool is_over = false;
  };
  struct Place {  // of a rung among those of all brackets
    double milestone = 0;
    std::uint32_t bracket = 0;
    std::uint32_t rung = 0;
    bool operator<(const Place& other) const {  // the top one first
      if (milestone != other.milestone) return milestone > other.milestone;
      return bracket < other.bracket;
    }
  };

  TrialState& state_of(TrialNumber trial);
  std::optional<double> next_stop(const TrialState& state) const;
  std::uint32_t reached(const TrialState& state, double time) const;
  template <class Worth>  // a signed value or a merit
  void record(TrialNumber trial, std::uint32_t upto, const Worth& worth, bool waits);
  std::optional<std::uint32_t> add_last(TrialNumber trial, const ResultView& result);
  void take_from_rung(TrialState& state);
  void pass_open_rungs(TrialState& state);
  void note(std::uint32_t bracket, std::uint32_t rung);
  void open_rungs(std::uint32_t bracket, std::uint32_t reached);
  Decision stop(std::string reason);
  RungPlace place(const TrialState& state, double value) const;
  std::string pause_reason(const TrialState& state) const;

  AshaOptions options_;
  BracketDraw draw_;
  std::vector<std::vector<PromotionRung>> brackets_;  // rungs from low to high
  std::vector<std::uint32_t> silent_;  // of each bracket, lowest rungs open for what they say
  std::set<Place> open_;               // rungs with a trial that may go on
  std::vector<TrialState> trials_;     // by number
  std::uint64_t stopped_ = 0;
  std::uint64_t promoted_ = 0;
  std::uint64_t waiting_ = 0;  // trials that wait and are not over
};

}  // namespace tune
