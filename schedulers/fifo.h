// FIFO: every trial runs until its stop rules end it, in the order they were created.
#pragma once

#include "schedulers/trial_scheduler.h"

namespace tune {

class FifoScheduler : public TrialScheduler {
 public:
  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  bool takes_several_objectives() const override { return true; }
  Milestone add_trial(TrialNumber) override { return {}; }
  Decision result(TrialNumber, const ResultView&) override { return Decision::go_on({}); }
  void end_trial(TrialNumber, TrialEnd, const Reported*) override {}
  std::vector<std::string> status_lines() const override;
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  Objective objective_;
};

}  // namespace tune
