// The scheduler behind tune::hyperband (schedulers/hyperband.h has the contract).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "schedulers/hyperband.h"
#include "schedulers/metric_scheduler.h"

namespace tune {

// A kind of bracket: rungs from low to high, where trials pause, and how many trials each
// takes; the last size is of those that go on to max_t.
struct BracketPlan {
  std::vector<double> milestones;
  std::vector<std::size_t> sizes;  // one more
};
// From the one that halves most to the one that halves nothing.
std::vector<BracketPlan> bracket_plans(const HyperBandOptions& options);

class HyperBandScheduler : public MetricScheduler {
 public:
  explicit HyperBandScheduler(HyperBandOptions options);  // checked by hyperband()

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
  struct Arrived {  // at the bracket's rung, in this order
    TrialNumber trial;
    double value = 0;
    Merit merit = {};  // in place of the value
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.trial, s.value);
      f.added(s.merit);
    }
  };
  struct Bracket {
    std::uint32_t added = 0;   // trials that ever joined
    bool is_closed = false;    // no more join
    std::uint32_t rung = 0;    // that its trials are at, or run to
    std::uint32_t on_way = 0;  // that run there and are not over
    std::vector<Arrived> arrived;
    std::vector<TrialNumber> going_on;  // from the rung before, the best first; not resumed yet
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.added, s.is_closed, s.rung, s.on_way, s.arrived, s.going_on);
    }
  };
  struct TrialState {
    std::uint32_t bracket = 0;
    std::uint32_t rung = 0;  // that it runs to, or waits at
    bool waits = false;      // there, or to go on from there
    bool is_over = false;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.bracket, s.rung, s.waits, s.is_over);
    }
  };
  using Brackets = std::map<std::uint32_t, Bracket>;

  const BracketPlan& plan(std::uint32_t bracket) const { return plans_[bracket % plans_.size()]; }
  TrialState& state_of(TrialNumber trial);
  std::optional<double> next_stop(const TrialState& state) const;
  std::vector<TrialNumber> best_of(std::uint32_t number, const Bracket& bracket) const;
  std::vector<Arrived> in_order(std::vector<Arrived> waiting) const;
  bool is_full(std::uint32_t number, const Bracket& bracket) const;
  const Brackets::value_type* closing() const;
  std::uint32_t join();
  void join_again(TrialNumber trial, TrialState& state);
  void halve_when_complete(std::uint32_t number);
  Decision stop(std::string reason);
  std::string pause_reason(const TrialState& state, const Arrived& arrived) const;
  RungPlace place(const TrialState& state, double value) const;
  void check_counts() const;

  HyperBandOptions options_;
  std::vector<BracketPlan> plans_;
  Brackets brackets_;               // those that are not over, by number
  std::set<std::uint32_t> ready_;   // those with a trial that goes on
  std::uint32_t next_bracket_ = 0;  // the number of the next one that is made
  std::vector<TrialState> trials_;  // by number
  std::uint64_t stopped_ = 0;
};

}  // namespace tune
