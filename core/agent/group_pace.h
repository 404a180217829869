// GroupPace: how far each rank of a group is, and which of them the others are ahead of.
//
// All ranks go through the same phases in the same order: setup, load (from a checkpoint), then
// what rank 0 says next: a step, a save, the end. A rank is awaited in its phase from when another
// rank finished that phase, or from when it began it if that is later. Rank 0 is awaited between
// two phases as well, unless it waits for the driver. Nobody is awaited in a phase that none has
// finished: it may take as long as it likes. One that returned before its time is awaited from then
// on, unless only rank 0 is left, which may have work of its own. A pure state machine; nothing
// makes it throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/worker_contract.h"

namespace tune {

class GroupPace {
 public:
  using Time = std::chrono::nanoseconds;  // any clock that does not go back

  GroupPace(Time now, std::uint32_t ranks, bool loads);

  void on_word(Time now, GroupStep word);           // of rank 0, to all
  void on_done(Time now, std::uint32_t rank);       // with its phase
  void on_returned(Time now, std::uint32_t rank);   // it ended as if all were to
  void on_ended(Time now, std::uint32_t rank);      // it said its last word, or is gone
  void on_listening(Time now, std::uint32_t rank);  // its time counts from now on

  struct Awaited {
    std::uint32_t rank = 0;
    Time since{};
    bool returned = false;  // before its time
  };
  // Who is awaited longest.
  std::optional<Awaited> awaited(bool leader_waits_for_driver) const;
  // What it has not finished: "setup", "load", "step 3", "save 3", "the end". Empty between phases.
  std::string phase_of(std::uint32_t rank) const;
  // The first rank that returned though rank 0 has not said that all are to end, or though it had
  // more to do before that end.
  struct Deserter {
    std::uint32_t rank = 0;
    std::string phase;    // in which it returned
    bool missed = false;  // rank 0 has finished that phase
  };
  std::optional<Deserter> deserter() const;
  // The one that has finished least, of those that have not ended; the lowest of several.
  std::uint32_t hindmost() const;

 private:
  struct Rank {
    std::uint64_t done = 0;  // phases
    Time since{};
    bool ended = false;
    std::string deserted = {};  // the phase in which it returned before its time, at `since`
  };
  struct Phase {
    std::string name;
    bool is_end = false;
    std::optional<Time> passed = {};  // when the first rank had finished it
  };
  std::uint64_t begun() const { return forgotten_ + phases_.size(); }
  const Phase* phase(const Rank& rank) const;
  bool may_return(const Rank& rank) const;

  std::vector<Rank> ranks_;
  std::deque<Phase> phases_;
  std::uint64_t forgotten_ = 0;  // phases that every rank has finished
};

}  // namespace tune
