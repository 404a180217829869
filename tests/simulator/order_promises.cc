#include "simulator/order_promises.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/violation.h"

namespace tune::simulator {

void OrderPromises::driver_started(std::int64_t num_samples) {
  samples_given_.insert(num_samples);
}

void OrderPromises::ordered(const UserOrdered& order) {
  given_.insert({order.kind, order.trial});
  if (order.kind == OrderKind::kAdd) ++additions_;
  if (order.kind == OrderKind::kNumSamples) samples_given_.insert(order.num_samples);
}

void OrderPromises::after_turn(const Controller& controller) {
  num_samples_ = controller.num_samples();
  if (!samples_given_.contains(num_samples_)) {
    violate("num_samples is what a driver or a user has said", std::to_string(num_samples_));
  }
  for (const Trial& trial : controller.trials()) {
    if (trial.is_added) added_.insert(trial.number);
    const auto before = trials_.find(trial.number);
    if (before != trials_.end()) {
      stays_paused(trial, before->second);
      stays_stopped(trial, before->second);
    }
    Known& known = trials_[trial.number];
    if (known.wish != trial.wish && trial.wish != Wish::kNone) ++world_.tally.wishes;
    if (trial.wish == Wish::kPause && trial.status == TrialStatus::kPaused &&
        known.status != TrialStatus::kPaused) {
      ++world_.tally.held;
    }
    known = {trial.wish, trial.status, trial.attempt};
  }
  if (added_.size() > additions_) {
    violate("a trial is added by a user alone",
            fmt::format("{} of {} that were ordered", added_.size(), additions_));
  }
  given_.clear();
}

// It may run on until it has saved, end by itself, or end with the experiment.
void OrderPromises::stays_paused(const Trial& trial, const Known& before) const {
  if (before.wish != Wish::kPause) return;
  const bool runs_on = before.status == TrialStatus::kRunning &&
                       trial.status == TrialStatus::kRunning && trial.attempt == before.attempt;
  const bool ends = is_over(trial.status) &&
                    (before.status == TrialStatus::kRunning || world_.scenario.may_be_cut_short());
  if (trial.status == TrialStatus::kPaused || runs_on || ends) return;
  // One that fails before it is paused may be retried in the same turn.
  for (const OrderKind kind : {OrderKind::kUnpause, OrderKind::kStop, OrderKind::kRetry}) {
    if (has(kind, trial.number)) return;
  }
  violate("only its user lets a paused trial go on",
          fmt::format("trial {} is {}", trial.number.value, status_name(trial.status)));
}

void OrderPromises::stays_stopped(const Trial& trial, const Known& before) const {
  if (before.wish != Wish::kStop || is_over(trial.status)) return;
  const bool ends = trial.status == TrialStatus::kRunning && trial.attempt == before.attempt;
  if (ends || has(OrderKind::kRetry, trial.number)) return;
  violate("a trial that a user has stopped starts no more",
          fmt::format("trial {} is {}", trial.number.value, status_name(trial.status)));
}

std::optional<std::size_t> OrderPromises::suggestion(TrialNumber trial) const {
  if (added_.contains(trial)) return std::nullopt;
  const auto before = std::ranges::count_if(added_, [&](TrialNumber one) { return one < trial; });
  return trial.value - static_cast<std::size_t>(before);
}

}  // namespace tune::simulator
