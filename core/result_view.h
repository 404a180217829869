// ResultView: one result as numbers by key path, without building a tree. Workers, schedulers, the
// table and warnings find the number that a stop rule, a milestone, the metric or a column names by
// this one rule; and what a number there means for the trial: that it ends, or waits for a verdict.
// Pure.
//
// The rule: the number that the user reported at the path; else, for a name in kFrameworkFields,
// the framework's own number of that name; else nothing. So a user's own training_iteration goes
// before the count of steps when it is a number; a text, list or null under that name does not hide
// the count. (When it did, it hid the count from the worker but not from the scheduler: a trial
// that reported "epoch 3" there never came to its stop rule.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/clock.h"
#include "core/contract_values.h"
#include "core/value.h"

namespace tune {

// Every result has these. Only timesteps_total exists no earlier than timesteps_this_iter is
// reported.
inline constexpr std::array<std::string_view, 6> kFrameworkFields = {
    "training_iteration", "time_total_s",    "time_this_iter_s",
    "time_since_restore", "timesteps_total", "iterations_since_restore"};

// The framework's own value of that name; nothing when it has none. Counts are whole numbers, times
// are in seconds.
std::optional<Value> framework_field(const Reported& report, std::string_view name);

class ResultView {
 public:
  ResultView(const Reported& report) : report_(&report) {}        // NOLINT: a view
  std::uint64_t iteration() const { return report_->iteration; }  // counts the steps
  // By the rule above. May be NaN or infinite when that was reported.
  std::optional<double> number(std::string_view path) const;

 private:
  const Reported* report_;
};

bool is_met(const StopRule& rule, double value);
// By a stop rule, or by its time; a limit of 0: none.
bool ends_trial(const Reported& report, std::span<const StopRule> rules, Duration max_trial_time);
bool reaches(const Reported& report, const Milestone& until);

}  // namespace tune
