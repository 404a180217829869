// UserOrders: orders of users to a sweep that runs, `tune stop` and its like. Pure.
#pragma once

#include "core/journal_format.h"
#include "core/trial.h"
#include "tune/control/control_state.h"
#include "tune/control/launcher.h"
#include "tune/control/trial_moves.h"
#include "tune/control/trial_source.h"

namespace tune {

class UserOrders {
 public:
  UserOrders(ControlState& state, TrialSource& source, TrialMoves& moves, Launcher& launcher)
      : state_(state), source_(source), moves_(moves), launcher_(launcher) {}

  // And answers. An answer that refuses has changed nothing.
  void obey(const UserOrdered& order);

 private:
  OrderAnswer answer_to(const UserOrdered& order);
  OrderAnswer stop(Trial& trial, const UserOrdered& order);
  OrderAnswer pause(Trial& trial, const UserOrdered& order);
  OrderAnswer unpause(Trial& trial, const UserOrdered& order);
  OrderAnswer retry(Trial& trial, const UserOrdered& order);
  OrderAnswer add(const UserOrdered& order);
  OrderAnswer set_num_samples(const UserOrdered& order);

  ControlState& state_;
  TrialSource& source_;
  TrialMoves& moves_;
  Launcher& launcher_;
};

}  // namespace tune
