// One driver process: the real DriverMachine, Turns, JournaledController and Peers with simulated
// edges around them. It can be killed or stalled between any two steps of a turn.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/peers.h"
#include "simulator/simulated_agent.h"
#include "simulator/simulated_logger.h"
#include "simulator/simulated_store.h"
#include "simulator/world.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/journaled_controller.h"
#include "tune/drive/turn.h"
#include "tune/results/record_channel.h"

namespace tune::simulator {

class SimulatedDriver : private TurnEdges {
 public:
  // Observes each turn while it is carried out.
  class Witness {
   public:
    virtual ~Witness() = default;
    virtual void replayed(const SimulatedDriver& driver) = 0;
    virtual void before_turn(const SimulatedDriver& driver, const Turn& turn) = 0;
    virtual void after_turn(const SimulatedDriver& driver, const Turn& turn,
                            const Effects& effects) = 0;
    virtual void before_command(const SimulatedDriver& driver, const Command& command) = 0;
    virtual void before_acknowledgement(const SimulatedDriver& driver, AgentNumber agent,
                                        std::uint64_t sequence) = 0;
  };
  struct Outside {
    std::function<void(Identity, std::string)> send_frame;
    std::function<void(Identity)> end_agent;  // with all its workers
    std::function<bool(Identity)> is_seen;    // whether the end of its process is
    std::function<bool(Identity)> lives;
    std::function<void()> wake;  // there are steps to take
    Witness* witness = nullptr;
  };
  // The wishes of a resume.
  struct Wish {
    bool retry_errored = false;
    int num_samples = 1;
  };
  enum class Fate : std::uint8_t { kLives, kOver, kSuperseded, kStoreLost };

  SimulatedDriver(World& world, StoreContents& store, ResultFiles& files, Outside outside);

  void start(Wish wish);
  bool has_steps() const { return !steps_.empty(); }
  void step();  // the next one

  void agent_started(Identity agent);
  void hear_frame(Identity agent, std::string frame);
  void see_lost(Identity agent);  // the end of its process, where it can
  void interrupt(int signal);
  void drain(Identity agent);
  void give(const UserOrdered& order);
  void end();  // nothing of it happens any more
  // Another driver has taken over, and with it the lock on the folder: later writes go to files of
  // its own.
  void leave_files() { logger_.leave_files(); }
  SimulatedStore& store() { return store_; }

  Fate fate() const { return fate_; }
  bool is_in_turn() const { return in_turn_; }  // effects are yet to come
  bool is_closed() const { return closed_; }    // over, and every agent is told to end
  const Controller& controller() const { return experiment_.controller(); }
  std::optional<AgentNumber> number_of(Identity agent) const;
  const ResultFiles& results() const { return logger_.results(); }
  // Whether everything that this agent has sent up to there is in the journal.
  bool is_journaled(AgentNumber agent, std::uint64_t sequence) const;
  std::optional<EntryId> last_appended() const { return appended_; }
  std::optional<EntryId> read_up_to() const { return store_.read_up_to(); }
  EntryId state_of() const { return experiment_.last(); }  // the last entry that it has
  std::uint64_t turns() const { return handled_; }
  std::uint64_t epoch() const { return epoch_; }
  // The records that the controller told in the last turn.
  const std::vector<std::string>& records() const { return records_; }

 private:
  using Step = std::function<void()>;

  void plan(Step step);
  void do_next(std::vector<Step> steps);
  void give_up(const Error& error);
  void replay();
  void take_epoch(const Wish& wish);
  void expect_agents();
  void plan_turn();
  void plan_tick();
  void plan_deadline();
  void take_turn_step();
  void end_turn();
  void read_input();
  void plan_retry();
  void act();
  void on(const EndAgent& action);
  void on(const StartStore&) {}  // it has no server of its own
  void on(const Say& action);
  void on(const GiveUp& action);
  void on(const Dismiss& action);
  void flush();
  void close();

  // As a turn needs them
  Time now() const override { return world_.queue.now(); }
  WallTime wall() const override { return WallTime{now()}; }
  const Peers& peers() const override { return *peers_; }
  void acknowledge(AgentNumber agent, Link::Position through) override;
  void send(AgentNumber agent, const Command& command) override;
  void order(AgentNumber agent, const Command& command);  // one that no turn gives
  void flush_commands() override { flush(); }
  void ask(const Asking::Question& question, Searcher::Question make) override;
  bool has_room() const override { return now() >= files_have_room_; }
  void write_results() override;
  void remove(const RemoveCheckpoint& checkpoint) override;
  void remove_unrecorded(const Trial& trial, AttemptNumber lost) override;
  void flush_results(std::future<std::string> state) override { state_ = std::move(state); }
  std::optional<std::string> flushed_results() override;
  void turn_begins(const Turn& turn) override;
  void turn_is_handled(const Turn& turn, const Effects& effects) override;

  World& world_;
  Outside outside_;
  Life life_ = new_life();
  SimulatedStore store_;
  SimulatedLogger logger_;
  RecordChannel channel_;
  std::future<std::string> state_;
  JournaledController experiment_;
  DriverMachine machine_{{.ends_with_agent = false,
                          .store_patience = world_.scenario.store_patience,
                          .lease = world_.scenario.lease}};
  Turns turns_{experiment_, machine_, *this};
  std::uint64_t epoch_ = 0;
  std::optional<Peers> peers_;  // once it listens
  std::deque<std::pair<Identity, std::string>> inbox_;
  std::vector<int> signals_;
  std::deque<Step> steps_;
  std::vector<Step> frames_;                                      // to be sent, each in a step
  std::map<AgentNumber, std::deque<std::uint64_t>> unjournaled_;  // sequence numbers
  bool turn_is_planned_ = false;
  bool tick_is_planned_ = false;
  bool closed_ = false;
  Time files_have_room_{};  // from then on
  bool in_turn_ = false;
  Fate fate_ = Fate::kLives;
  std::optional<EntryId> appended_;
  std::vector<std::string> records_;
  std::uint64_t handled_ = 0;  // turns
};

}  // namespace tune::simulator
