// The promises about trials that go on from others' checkpoints: each replacement happens once and
// whole, from a checkpoint that a trial would have restarted from then; and a trial's configuration
// changes by nothing else.
//
// Counted from the journal and from the messages to agents, not from the controller's own books.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "core/agent_contract.h"
#include "simulator/world.h"

namespace tune::simulator {

class ReplacementPromises {
 public:
  explicit ReplacementPromises(World& world) : world_(world) {}

  // The journal's turns, in order, each before its events.
  void turn_begins();
  void reported(const Reported& report);
  void saved(const CheckpointSaved& saved);
  void ended(const AttemptEnded& ended);
  // The commands of the newest turn.
  void told(const StopAttempt& stop);
  void launched(const Launch& launch);
  // The same as told: a driver that was not seen has decided it.
  void told_unseen(TrialNumber trial);
  void turn_is_over();

  // Whether it was told to give its state up, and has not begun with the other one.
  bool is_leaving(TrialNumber trial) const;

 private:
  using Origins = std::set<CheckpointOrigin>;
  struct Known {
    Packed config;
    std::uint64_t last_reported = 0;
    std::optional<CheckpointOrigin> own;     // its newest checkpoint
    std::optional<CheckpointOrigin> origin;  // that it restarts from; counted on from
    std::uint64_t count = 0;                 // this iteration
    bool is_leaving = false;                 // it was told to
    bool may_be_replaced = false;            // what it was told is not known, or it was paused
    Origins allowed;                         // while one of the two holds
    std::optional<CheckpointOrigin> restart() const { return origin ? origin : own; }
  };
  Origins restarts() const;
  void take_origin(const Launch& launch, Known& known);

  World& world_;
  std::map<TrialNumber, Known> trials_;
  Origins before_;                     // what trials would restart from before the newest turn,
  Origins since_;                      // and what was saved in it
  std::set<TrialNumber> reported_in_;  // a turn whose commands were not seen yet
  bool is_open_ = false;               // such a turn is the newest
};

}  // namespace tune::simulator
