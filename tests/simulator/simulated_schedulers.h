// Schedulers for the simulator: one that pauses, and a witness of how a scheduler is called.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "schedulers/trial_scheduler.h"

namespace tune::simulator {

// Pauses a trial at regular iterations, so that all go on in turn. Trials that do badly at their
// second pause never get another turn.
class PausingScheduler : public TrialScheduler {
 public:
  PausingScheduler(int every, bool resumed_first) : every_(every), resumed_first_(resumed_first) {}

  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  Milestone add_trial(TrialNumber trial) override;
  Decision result(TrialNumber trial, const ResultView& result) override;
  Milestone resume_trial(TrialNumber trial) override;
  void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) override;
  std::optional<TrialNumber> choose(const Candidates& candidates) const override;
  bool resumed_first() const override { return resumed_first_; }
  bool pauses() const override { return true; }
  std::vector<std::string> status_lines() const override { return {"Pausing"}; }
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  struct Turn {
    TrialNumber trial;
    double until = 0;
    bool is_hopeless = false;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.trial, s.until, s.is_hopeless);
    }
  };
  int every_;
  bool resumed_first_;
  Objective objective_;
  std::map<TrialNumber, Turn> turns_;
};

// Checks that a scheduler is told of each trial and each (trial, iteration) once and in order, and
// that a paused trial which it would choose is ended only when the experiment may be cut short. Its
// observations are part of the saved state.
class WatchedScheduler : public TrialScheduler {
 public:
  WatchedScheduler(std::unique_ptr<TrialScheduler> inner, bool may_be_cut_short)
      : inner_(std::move(inner)), may_be_cut_short_(may_be_cut_short) {}

  void configure(const Objective& experiment) override { inner_->configure(experiment); }
  Objective objective() const override { return inner_->objective(); }
  Milestone add_trial(TrialNumber trial) override;
  Decision result(TrialNumber trial, const ResultView& result) override;
  Milestone resume_trial(TrialNumber trial) override;
  std::optional<ResumedAs> resumed_as(TrialNumber trial) override {
    return inner_->resumed_as(trial);
  }
  void take_config(TrialNumber trial, const Packed& config) override {
    inner_->take_config(trial, config);
  }
  void checkpoint_saved(TrialNumber trial, std::uint64_t iteration) override {
    seen(trial, "a checkpoint");
    inner_->checkpoint_saved(trial, iteration);
  }
  void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) override;
  std::optional<TrialNumber> choose(const Candidates& candidates) const override {
    return inner_->choose(candidates);
  }
  bool resumed_first() const override { return inner_->resumed_first(); }
  bool pauses() const override { return inner_->pauses(); }
  bool replaces() const override { return inner_->replaces(); }
  std::optional<double> max_t() const override { return inner_->max_t(); }
  std::vector<std::string> status_lines() const override { return inner_->status_lines(); }
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  struct Seen {
    std::uint64_t iterations = 0;
    bool ended = false;
    bool may_come_again = false;
    bool paused = false;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.iterations, s.ended, s.may_come_again, s.paused);
    }
  };
  Seen& seen(TrialNumber trial, const char* by);
  void could_not_go_on(TrialNumber trial) const;

  std::unique_ptr<TrialScheduler> inner_;
  bool may_be_cut_short_;
  std::vector<Seen> trials_;
};

}  // namespace tune::simulator
