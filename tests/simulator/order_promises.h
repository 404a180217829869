// The promises about users' orders: a trial that a user has paused or stopped stays so, through
// every accident, until a user says otherwise; nothing is added that no user gave.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "core/trial.h"
#include "simulator/world.h"
#include "tune/control/controller.h"

namespace tune::simulator {

class OrderPromises {
 public:
  explicit OrderPromises(World& world) : world_(world) {}

  void driver_started(std::int64_t num_samples);
  void ordered(const UserOrdered& order);
  // Called after a turn of the leading driver; what was told since counts.
  void after_turn(const Controller& controller);

  // Trials that are not suggestions of the searcher.
  std::uint64_t added() const { return added_.size(); }
  // The number of samples there are to be: of the driver, or of a user's order.
  std::int64_t num_samples() const { return num_samples_; }
  // The number of the searcher's suggestion that this trial is; nothing: a user has added it.
  std::optional<std::size_t> suggestion(TrialNumber trial) const;
  // In this turn: it was over before, and a user has ordered so. Ask before after_turn.
  bool was_retried(TrialNumber trial) const {
    const auto before = trials_.find(trial);
    return before != trials_.end() && is_over(before->second.status) &&
           has(OrderKind::kRetry, trial);
  }

 private:
  struct Known {
    Wish wish = Wish::kNone;
    TrialStatus status = TrialStatus::kPending;
    AttemptNumber attempt;
  };
  bool has(OrderKind kind, TrialNumber trial) const { return given_.contains({kind, trial}); }
  void stays_paused(const Trial& trial, const Known& before) const;
  void stays_stopped(const Trial& trial, const Known& before) const;

  World& world_;
  std::map<TrialNumber, Known> trials_;                // after the turn before
  std::set<std::pair<OrderKind, TrialNumber>> given_;  // since then
  std::set<TrialNumber> added_;
  std::uint64_t additions_ = 0;           // that were ordered
  std::set<std::int64_t> samples_given_;  // by users and drivers
  std::int64_t num_samples_ = 0;
};

}  // namespace tune::simulator
