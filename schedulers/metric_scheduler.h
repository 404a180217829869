// MetricScheduler: what the schedulers that compare trials by a metric have in common. Pure.
//
// Values are kept so that larger is better; whoever shows one turns it around again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/wire.h"
#include "schedulers/trial_scheduler.h"

namespace tune {

class MetricScheduler : public TrialScheduler {
 public:
  void configure(const Objective& experiment) override;
  Objective objective() const override { return objective_; }

 protected:
  struct Own {  // what the scheduler itself was given
    std::string metric;
    std::optional<Mode> mode;
  };
  MetricScheduler(const char* name, Own own) : name_(name), own_(std::move(own)) {}

  // A result that is to be judged, or the decision when it is not: it has not come to `next`, has
  // no metric, which is looked at again with the next report, or has come to `end`.
  struct Judged {
    double time = 0;
    double value = 0;  // as reported
  };
  std::variant<Decision, Judged> read(const ResultView& result, const std::string& time_attr,
                                      Milestone next, std::optional<double> end) const;

  double signed_value(double value) const;  // its own inverse
  // A signed value as the user reported it: whole, or without the digits that interpolation leaves.
  std::string full_text(double value) const;
  std::string short_text(std::optional<double> value) const;  // "None" without one

  // Part of a saved state: what its values are of. Reading another than the own one throws.
  void save_objective(PackWriter& out) const;
  void check_objective(PackReader& in) const;
  [[noreturn]] void refuse_state(const std::string& why) const;

 private:
  const char* name_;
  Own own_;
  Objective objective_;
};

[[noreturn]] void refuse_scheduler_state(const char* name, const std::string& why);

// "iteration" for training_iteration, as users say it.
std::string_view short_time_name(std::string_view time_attr);

}  // namespace tune
