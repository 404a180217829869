// GroupPace: how far each rank of a group is, and which of them the others are ahead of.
//
// All ranks go through the same phases in the same order: setup, load (from a checkpoint), then the
// phases that rank 0 names: a step, a save, the end. A rank is awaited in its phase from when
// another rank finished that phase, or from when it began it if that is later. Rank 0 is awaited
// between two phases as well, unless it waits for the driver. No rank is awaited in a phase that
// none has finished: it may take as long as it likes. A rank that returned before its time is
// awaited from then on, unless only rank 0 is left, which may have work of its own.
//
// A rank that says that it works alone is awaited from then on, by a limit of its own, whether
// another has finished its phase or not; a save has that limit, too, once another has finished it.
// Until both are done the others' time stands still, and it begins anew then: they may wait for
// such a rank in a collective, or for one that does.
//
// Simpler ways fail:
// - One limit for a whole step: it must be longer than the slowest honest step, which nobody knows
//   beforehand; too short, it kills a slow model, too long, a dead group holds its GPUs for hours.
// - A limit on the silence of each rank: in a collective all ranks are silent while one hangs, so
//   all are late at the same moment and the wrong one is named.
// - One long limit for every lag: it would do for a rank that validates alone for ten minutes, but
//   a rank that hangs in a collective would then hold its GPUs for as long.
// - A limit on rank 0 alone, which reports: it waits for the others in the next collective, and is
//   the victim, not the cause.
//
// A pure state machine; no call makes it throw.
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
  void on_alone(Time now, std::uint32_t rank, bool begins);
  void begin_anew(Time now);  // no rank was heard up to now

  struct Limits {  // 0: none
    Time group{};
    Time alone{};
  };
  struct Awaited {
    std::uint32_t rank = 0;
    Time due{};             // when it has had all its time
    bool returned = false;  // before its time
    bool alone = false;     // by the limit of a rank alone
  };
  // The rank whose time is over first.
  std::optional<Awaited> awaited(const Limits& limits, bool leader_waits_for_driver) const;
  bool is_another_alone(std::uint32_t rank) const;
  // A rank has still to finish its setup or load.
  bool is_any_before_its_first_step() const;
  // The reason of the trial's end then, in words about that rank.
  std::string complaint(const Awaited& late, const Limits& limits) const;
  // The phase that the rank has not finished: "setup", "load", "step 3", "save 3", "the end". Empty
  // between phases.
  std::string phase_of(std::uint32_t rank) const;
  // The first rank that returned though rank 0 has not said that all are to end, or though the rank
  // had more to do before that end.
  struct Deserter {
    std::uint32_t rank = 0;
    std::string phase;    // in which it returned
    bool missed = false;  // rank 0 has finished that phase
  };
  std::optional<Deserter> deserter() const;
  // The rank that has finished least, of those that have not ended; the lowest of several.
  std::uint32_t hindmost() const;

 private:
  struct Rank {
    std::uint64_t done = 0;  // phases
    Time since{};
    bool ended = false;
    std::string deserted = {};  // the phase in which it returned before its time, at `since`
    std::optional<Time> alone_since = {};
  };
  struct Phase {
    std::string name;
    bool is_end = false;
    bool is_save = false;
    std::optional<Time> passed = {};  // when the first rank had finished it
  };
  std::uint64_t begun() const { return forgotten_ + phases_.size(); }
  const Phase* phase(const Rank& rank) const;
  std::optional<Awaited> awaited(std::uint32_t number, const Limits& limits,
                                 bool leader_waits_for_driver) const;
  bool may_return(const Rank& rank) const;
  bool is_alone(const Rank& rank) const;
  void hold_time(Time now);

  std::vector<Rank> ranks_;
  std::deque<Phase> phases_;
  std::uint64_t forgotten_ = 0;  // phases that every rank has finished
  std::uint64_t before_steps_ = 0;  // setup, and load if there is one
};

}  // namespace tune
