// MetricScheduler: what the schedulers that compare trials by a metric have in common. Pure.
//
// Values are kept so that larger is better; whoever shows one turns it around again. Where the
// experiment has several objectives, or constraints, a value is a Merit (schedulers/merit.h), and
// trials are compared by Fronts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/wire.h"
#include "schedulers/fronts.h"
#include "schedulers/merit.h"
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

  // A result that is to be judged, or the decision when it is not: it has not come to `next` (a value
  // of `time_attr`), has no metric, which is looked at again with the next report, or has come to
  // `end`.
  struct Judged {
    double time = 0;
    double value = 0;           // as reported; not when there is a need for merits
    MeritNumbers numbers = {};  // then these
  };
  std::variant<Decision, Judged> read(const ResultView& result, const std::string& time_attr,
                                      std::optional<double> next, std::optional<double> end) const;
  // The milestone at that value; without one there is none.
  static Milestone until(const std::string& time_attr, std::optional<double> next);

  bool has_merits() const { return needs_merit(objective_); }
  std::optional<MeritNumbers> numbers(const ResultView& result) const;
  Merit merit(const MeritNumbers& numbers) const { return merit_of(numbers, goals_); }
  // As reported: "(0.81, 12.5)", and whether it breaks a constraint.
  std::string merit_text(const Merit& merit) const;
  // A member's standing at a rung: by its place in the order, and the value of the first goal.
  RungPlace front_place(const Fronts& fronts, std::size_t member, double milestone) const;
  // Of those recorded at a rung, for the status block: "9 in 3 fronts".
  static std::string fronts_text(const Fronts& fronts);
  // For `restore`: whether a merit is of this objective, or empty where there is no need for one;
  // and what was written of Fronts, or a refusal.
  bool is_own(const Merit& merit) const;
  void read_merits(PackReader& in, Fronts& fronts) const;

  double signed_value(double value) const;  // its own inverse
  // A signed value as the user reported it: whole, or without the digits that interpolation leaves.
  std::string full_text(double value) const;
  std::string short_text(std::optional<double> value) const;  // "None" without one

  // Part of a saved state: what its values are of. Reading another than the own one throws.
  void save_objective(PackWriter& out) const;
  void check_objective(PackReader& in) const;
  [[noreturn]] void refuse_state(const std::string& why) const;

 private:
  std::string lacks(const ResultView& result) const;

  const char* name_;
  Own own_;
  Objective objective_;
  std::size_t goals_ = 0;  // of the objective
};

[[noreturn]] void refuse_scheduler_state(const char* name, const std::string& why);

// "iteration" for training_iteration, as users say it.
std::string_view short_time_name(std::string_view time_attr);

}  // namespace tune
