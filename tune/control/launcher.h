// Launcher: chooses what begins next, and where, while there is room. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "core/agent_contract.h"
#include "core/trial.h"
#include "tune/control/control_state.h"
#include "tune/control/experiment_end.h"
#include "tune/control/trial_moves.h"
#include "tune/control/trial_source.h"

namespace tune {

class Launcher {
 public:
  Launcher(ControlState& state, TrialSource& source, TrialMoves& moves, ExperimentEnd& end)
      : state_(state), source_(source), moves_(moves), end_(end) {}

  // Launches the next trials while there is room, and finds out when all are over. The order is
  // strict, no trial passes another; but trials that are to be tried on another place have had
  // their turn, and only wait for that place.
  void fill();
  // The node that leads a group listens: the others may come.
  void begin_others(AgentNumber lead, const GroupMeets& meets);

  // The number of trials that would begin now if there was room for them; `most` at most.
  std::uint64_t wanted(std::uint64_t most) const;

 private:
  enum class Launched : std::uint8_t { kOne, kNone, kLacksProposal };

  bool has_room_for_another() const;
  void launch_second_tries();
  Launched launch_next();
  std::optional<TrialNumber> choose_next(const TrialBook::Numbers& waiting) const;
  std::optional<Placement> place_next();
  Placement nearer(const Trial& trial, Placement found);
  std::uint64_t free_places();
  void launch(Trial& trial, Placement placement);
  Launch launch_of(const Trial& trial) const;

  ControlState& state_;
  TrialSource& source_;
  TrialMoves& moves_;
  ExperimentEnd& end_;
};

}  // namespace tune
