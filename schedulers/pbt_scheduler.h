// The scheduler behind tune::pbt (tune/search/pbt/pbt.h has the contract): when a trial is judged,
// which trials it may go on from, and who waits for whom. How values change is another's matter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "schedulers/metric_scheduler.h"
#include "schedulers/population.h"
#include "schedulers/scheduler_parameters.h"

namespace tune {

// A trial's gain from one judgement to the next, or from where it was replaced.
struct Interval {
  TrialNumber trial;
  double time = 0;    // at its end
  double before = 0;  // the score at its beginning; larger is better
  double gain = 0;    // of the score, a unit of time
  Packed config;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.time, s.before, s.gain, s.config);
  }
};

// The facts that the new values of a trial may depend on.
struct Exploration {
  TrialNumber trial;  // that is replaced
  TrialNumber donor;
  std::uint64_t iteration = 0;  // of the trial, whose result was judged
  std::uint64_t seed = 0;       // of the experiment
  const Config& config;         // the donor's
  double time = 0;              // of the judged result
  double donor_score = 0;
  std::span<const Interval> history = {};   // the oldest first
  std::vector<const Packed*> running = {};  // the configurations of the other trials
  Keeps keeps = {};                         // empty: the space has no rules
  bool may_be(const Config& values) const { return !keeps || keeps(values); }
  // The luck of a try at new values: those that break a rule are chosen anew, so often at most.
  static constexpr int kMostTries = 100;
  RandomStream luck(const std::string& purpose, int attempt) const;
};
struct Explored {
  Config config;
  std::string changes;  // fit to show: "lr 0.1 * 1.2 = 0.12"
};
using Explore = std::function<Explored(const Exploration&)>;

struct PbtRules {
  std::string time_attr = "training_iteration";
  std::string metric = {};        // empty: the experiment's
  std::optional<Mode> mode = {};  // empty: the experiment's
  double perturbation_interval = 10;
  double burn_in_period = 0;
  double quantile_fraction = 0.25;
  bool require_attrs = false;
  bool synch = false;
  bool keeps_intervals = false;  // for an Explore that learns from them
};
// Throws Error (kBadInput) naming the parameter of that scheduler and its value.
void check_rules(const char* scheduler, const PbtRules& rules);
Config parameters_of(const PbtRules& rules);

// Of what users write: PbtOptions or Pb2Options, which have these rules under the same names.
template <class Options>
PbtRules rules_of(const Options& options) {
  return {.time_attr = options.time_attr,
          .metric = options.metric,
          .mode = options.mode,
          .perturbation_interval = options.perturbation_interval,
          .burn_in_period = options.burn_in_period,
          .quantile_fraction = options.quantile_fraction,
          .require_attrs = options.require_attrs,
          .synch = options.synch};
}
template <class Options>
void read_rules(const SchedulerParameters& parameters, Options& options) {
  parameters.read("perturbation_interval", options.perturbation_interval);
  parameters.read("quantile_fraction", options.quantile_fraction);
  parameters.read("burn_in_period", options.burn_in_period);
  parameters.read("require_attrs", options.require_attrs);
  parameters.read("synch", options.synch);
  parameters.read("time_attr", options.time_attr);
  parameters.read_objective(options.metric, options.mode);
}

class PbtScheduler : public MetricScheduler {
 public:
  // `name` is what users call it. The rules were checked.
  PbtScheduler(const char* name, PbtRules rules, Explore explore);

  void take_rules(Keeps keeps) override { keeps_ = std::move(keeps); }
  void take_config(TrialNumber trial, const Packed& config) override;
  Milestone add_trial(TrialNumber trial) override;
  Decision result(TrialNumber trial, const ResultView& result) override;
  Milestone resume_trial(TrialNumber trial) override;
  std::optional<ResumedAs> resumed_as(TrialNumber trial) override;
  void checkpoint_saved(TrialNumber trial, std::uint64_t iteration) override;
  void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) override;
  std::optional<TrialNumber> choose(const Candidates& candidates) const override;
  bool pauses() const override { return true; }
  bool replaces() const override { return true; }
  std::vector<std::string> status_lines() const override;
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  struct TrialState {
    Packed config;
    double next = 0;              // the time at which it is judged next
    double time = 0;              // at which it was judged last
    double score = 0;             // then; larger is better
    double base_time = 0;         // where the interval that it trains began, and
    double base_score = 0;        // its score there
    std::uint64_t judged_at = 0;  // the iteration then; 0: never
    std::uint64_t saved_at = 0;   // the newest iteration of its own on disk; 0: none
    bool is_over = false;
    bool waits = false;      // for the others; synchronous
    bool may_go_on = false;  // all have come; synchronous
    bool exists = false;     // it was added
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.config, s.next, s.time, s.score, s.base_time, s.base_score, s.judged_at, s.saved_at,
        s.is_over, s.waits, s.may_go_on, s.exists);
    }
  };
  struct Due {  // of a trial that waits and is to go on from another one
    TrialNumber donor;
    Packed config;
    std::string reason;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.donor, s.config, s.reason);
    }
  };

  TrialState& state_of(TrialNumber trial);
  Milestone next_stop(const TrialState& state) const { return {rules_.time_attr, state.next}; }
  void take_score(TrialNumber trial, double time, double score, std::uint64_t iteration);
  void keep_interval(TrialNumber trial);
  std::optional<ResumedAs> exploit(TrialNumber trial);
  Explored explored(TrialNumber trial, TrialNumber donor) const;
  std::vector<TrialNumber> donors_for(TrialNumber trial) const;
  std::string reason_of(TrialNumber trial, TrialNumber donor, const std::string& changes) const;
  Decision wait_for_others(TrialNumber trial);
  std::size_t still_on_their_way() const;
  bool all_have_come(const Candidates& candidates) const;
  void let_all_go_on();

  PbtRules rules_;
  Explore explore_;
  Keeps keeps_;
  Population population_;             // the trials that are not over and were judged
  std::vector<TrialState> trials_;    // by number
  std::vector<Interval> intervals_;   // the newest, when they are kept
  double next_sync_;                  // the time at which all wait next
  std::map<std::uint32_t, Due> due_;  // by trial
  std::uint64_t asked_to_save_ = 0;
  std::uint64_t replaced_ = 0;
};

}  // namespace tune
