// The promises of an experiment to its trials: how many there are, when one fails for good, where
// it starts again, which of its checkpoints stay, and that it need not wait for free room.
//
// Counted from the journal and from the messages to agents, not from the controller's own books.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "memory_store.h"
#include "simulator/order_promises.h"
#include "simulator/replacement_promises.h"
#include "simulator/simulated_store.h"
#include "simulator/world.h"
#include "tune/control/controller.h"
#include "tune/drive/journal.h"

namespace tune::simulator {

class TrialPromises {
 public:
  TrialPromises(World& world, StoreContents& store)
      : world_(world),
        replacements_(world),
        orders_(world),
        contents_(store.now),
        journal_(contents_) {}

  // Called after a turn of the leading driver, with its effects.
  void after_turn(const Controller& controller, const Effects& effects);
  // The experiment is over.
  void at_the_end(const Controller& controller) const;

 private:
  struct Open {  // an attempt that was launched and has not ended
    AttemptNumber attempt;
    AgentNumber agent;
    std::vector<std::uint32_t> gpus;
    Milestone until;  // as it was told last
    bool has_reported = false;
    std::uint32_t nodes = 1;
    bool is_free = false;  // it has its place no more
  };
  struct Known {
    std::uint64_t newest_checkpoint = 0;  // recorded last; 0: none
    std::uint64_t failures = 0;           // since the trial was created or retried, at the most
    bool is_in_error = false;
    bool may_be_tried_elsewhere = false;  // failed before a first report, and not again since
  };
  struct Room {  // that a node still has
    std::int64_t cpu_units = 0;
    std::int64_t memory_bytes = 0;
    std::vector<std::int64_t> gpu_units;
  };

  void follow(const Turn& turn);
  void follow(const DriverStarted& event);
  void keep_those_of(const Controller& controller);
  void follow_unseen(const Controller& controller);
  void follow(AgentNumber agent, const AgentHello& hello);
  void follow(const AgentLost& event);
  void give_up(AgentNumber agent, TrialNumber trial, AttemptNumber attempt);
  void follow(const FromAgent& event);
  void follow(const AttemptEnded& ended);
  void follow(const Proposed& proposed);
  void follow(const UserOrdered& order) { orders_.ordered(order); }
  template <class Any>
  void follow(const Any&) {}
  void follow(const Reported& report, Open& open);
  Open* current(AgentNumber agent, TrialNumber trial, AttemptNumber attempt);

  std::set<std::string> places_of(const Open& open) const;
  bool is_bad(const Open& open) const;
  bool there_is_another_place(const Open& open) const;

  void only_where_trials_failed_none_go(const Controller& controller) const;
  void starts_from_its_newest_checkpoint(const Launch& launch) const;
  void goes_on_where_its_checkpoint_is(const Controller& controller, AgentNumber agent,
                                       const Launch& launch);
  void starts_within_the_budget(const Launch& launch) const;
  void note_question(const Controller& controller);
  void note_samples();
  void runs_what_was_proposed(const Launch& launch) const;
  void no_more_trials_than_asked_for(const Controller& controller) const;
  void fails_only_when_its_failures_are_used_up(const Trial& trial) const;
  void keeps_few_checkpoints(const Trial& trial, const Controller& controller) const;
  void none_waits_for_room_that_is_there(const Controller& controller) const;
  void none_waits_for_whole_nodes(const Controller& controller) const;
  bool waits_for_its_gpus(AgentNumber agent) const;
  std::map<AgentNumber, Room> empty_rooms(const std::set<std::string>& without) const;
  std::map<AgentNumber, Room> room(const std::set<std::string>& without) const;
  bool fits(const Room& room) const;

  World& world_;
  ReplacementPromises replacements_;
  OrderPromises orders_;
  testing::MemoryStore contents_;
  Journal journal_;
  std::uint64_t asked_for_ = 0;  // by the newest driver
  // Of the searcher, by any driver: one that stalled may take over with an older wish.
  std::uint64_t most_suggestions_ = 0;
  Duration time_budget_{};        // 0: none
  bool budget_is_spent_ = false;  // before the newest turn
  ExperimentTime now_{};          // of the newest turn
  std::uint32_t max_failures_ = 0;
  std::uint32_t max_concurrent_trials_ = 0;
  // Of a searcher that takes time: the configurations in its answers, one a trial, and what each
  // open question is to be answered.
  std::vector<Packed> proposed_;
  std::map<std::uint64_t, std::string> due_answers_;
  std::map<TrialNumber, Known> trials_;
  std::map<TrialNumber, Open> open_;
  std::map<TrialNumber, AgentNumber> paused_on_;  // such a node, alone, since that
  std::size_t events_ = 0;                        // of the newest turn
  std::map<AgentNumber, NodeResources> nodes_;
  std::vector<AgentNumber> joined_;  // in this order, and those that have left since
  std::map<AgentNumber, std::string> hostnames_;
  std::set<std::string> failed_at_;  // places where an attempt failed before its first report
  std::set<std::string> set_aside_;  // before or after the newest turn
  std::set<AgentNumber> ready_;
  std::set<AgentNumber> carrying_;  // what is saved there to where it is kept
  std::set<AgentNumber> out_;
  std::set<AgentNumber> away_;      // after the newest turn
  std::set<AgentNumber> expected_;  // of a driver before; they have not greeted this one
  std::uint64_t epoch_ = 0;
  const Controller* controller_ = nullptr;  // while its turns are followed
  const Controller* kept_by_ = nullptr;     // that was it when a driver's start was followed last
  // Attempts of machines that were lost and have not said yet that they are gone.
  std::map<AgentNumber, std::set<std::pair<TrialNumber, AttemptNumber>>> abandoned_;
  std::map<AgentNumber, std::set<std::uint64_t>> parts_;  // attempt_keys, where it does not lead
};

}  // namespace tune::simulator
