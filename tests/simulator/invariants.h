// The promises that hold in every run. Each has a function of its own that throws Violation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulator/simulated_agent.h"
#include "simulator/simulated_driver.h"
#include "simulator/trial_promises.h"

namespace tune::simulator {

class Invariants : public SimulatedDriver::Witness {
 public:
  Invariants(World& world, StoreContents& store)
      : world_(world), store_(store), trials_(world, store) {}

  // Called after every event. `driver` is the leading one; null while there is none.
  using Agents = std::vector<const SimulatedAgent*>;
  void after_event(const Agents& agents, const SimulatedDriver* driver);

  // Whether this driver is the last one that took over.
  bool leads(const SimulatedDriver& driver) const {
    return driver.last_appended() && driver.last_appended()->epoch == leader_;
  }
  // A driver's end; the next one must find its state.
  void driver_ended(const SimulatedDriver& driver);
  // The experiment is over.
  void at_the_end(const SimulatedDriver& driver, const ResultFiles& files) const;

  void replayed(const SimulatedDriver& driver) override;
  void before_turn(const SimulatedDriver& driver, const Turn& turn) override;
  void after_turn(const SimulatedDriver& driver, const Turn& turn, const Effects& effects) override;
  void before_command(const SimulatedDriver& driver, const Command& command) override;
  void before_acknowledgement(const SimulatedDriver& driver, AgentNumber agent,
                              std::uint64_t sequence) override;

 private:
  struct Open {  // an attempt that was launched and has not ended
    AttemptNumber attempt;
    std::uint32_t nodes = 1;
    std::optional<AgentNumber> lead;  // nothing: it has ended there
    std::set<AgentNumber> others;     // where it has not
    std::set<AgentNumber> free;       // of these, where it has no place any more
    friend bool operator==(const Open&, const Open&) = default;

    bool runs_on(AgentNumber agent) const { return lead == agent || others.contains(agent); }
    bool is_over() const { return !lead && others.empty(); }
    void remove(AgentNumber agent) {
      if (lead == agent) lead.reset();
      others.erase(agent);
      free.erase(agent);
    }
  };
  static Open open_of(const Trial& trial);
  void end_on(AgentNumber agent);
  void groups_end_everywhere(const Agents& agents) const;
  void no_loss_of_a_node_is_a_failure(const AttemptEnded& ended) const;
  void no_nonsense_ends_well(const AttemptEnded& ended) const;
  const Launch* promised(const WorkerLaunch& launch, std::uint32_t rank) const;
  // The same state in a controller of its own, which is told the turn without its stale events.
  struct Branch {
    std::string state;
    std::vector<std::string> effects;  // commands, removals and records
    bool stale = false;
  };

  // GPU units by GPU that the processes of an agent were given.
  // By attempts that `holder` knows to run there, or by all.
  std::vector<std::int64_t> gpu_use(const SimulatedAgent& agent,
                                    const Controller* holder = nullptr) const;
  void no_resource_is_promised_twice(const SimulatedAgent& agent) const;
  void no_gpu_is_promised_to_two_agents(const Agents& agents, const SimulatedDriver& driver) const;
  void processes_have_a_reservation(const SimulatedAgent& agent, const SimulatedDriver& driver);
  bool may_run_unknown(const SimulatedAgent& agent, const SimulatedDriver& driver);
  Time time_to_end() const;
  void count_said_again(const Turn& turn, const Effects& effects);
  void follow_start(const SimulatedDriver& driver);
  bool follow_unseen(const SimulatedDriver& driver);
  void follow(AgentNumber agent, const AgentHello& hello);
  void reservations_equal_running_trials(const Controller& controller) const;
  void running_trials_are_the_open_attempts(const Controller& controller) const;
  void recorded_checkpoints_are_on_disk(const Controller& controller) const;
  void results_are_whole(const SimulatedDriver& driver, const ResultFiles& files) const;
  void every_replay_gives_this_state(const Controller& controller) const;

  bool is_stale(const FromAgent& from) const;
  bool is_timed_out(const Reported& report) const;
  void follow(const Event& event);
  void follow(const FromAgent& from);
  static bool ends_foreign(const FromAgent& from, const Controller& controller);
  void only_who_hangs_is_said_to(const AttemptEnded& ended) const;
  void taken_over(const SimulatedDriver& driver);
  void follow_launch(const Controller& controller, AgentNumber agent, const Launch& launch);
  void branch_off(const SimulatedDriver& driver, const Turn& turn);
  void no_old_message_had_an_effect(const SimulatedDriver& driver, const Effects& effects);

  World& world_;
  StoreContents& store_;
  TrialPromises trials_;
  std::map<TrialNumber, Open> open_;
  std::set<AgentNumber> lost_;
  std::optional<EntryId> followed_;
  std::set<AgentNumber> kept_;      // of a driver before, by the newest
  std::set<AgentNumber> expected_;  // of those, the ones that have not greeted it
  std::map<Identity, Time> unknown_since_;  // to the driver; not before they can be reached
  std::map<TrialNumber, AttemptNumber> launched_;     // the newest
  // By attempt_key and node of the group: what each was to have.
  std::map<std::pair<std::uint64_t, std::uint32_t>, Launch> promised_;
  std::set<std::pair<std::uint64_t, AgentNumber>> parts_;  // that do not lead
  std::map<std::uint64_t, std::uint64_t> journaled_;  // by attempt_key: its last result
  std::optional<Branch> branch_;
  std::uint64_t removals_ = 0;         // of checkpoints, that were looked at
  std::uint64_t leader_ = 0;           // the epoch of the driver that has taken over last
  std::optional<EntryId> read_up_to_;  // by the driver that has replayed last
  struct Legacy {
    std::string state;
    ResultFiles results;
    std::optional<EntryId> last;
    bool was_running = false;  // and not ending
  };
  std::optional<Legacy> legacy_;  // what the driver before this one knew
};

}  // namespace tune::simulator
