// One driver process: the real JournaledController and Links, and around them what tune/drive/driver.cc
// does in a turn, cut into steps so that it can be killed or stalled between any two of them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/link.h"
#include "simulator/simulated_agent.h"
#include "simulator/simulated_logger.h"
#include "simulator/simulated_store.h"
#include "simulator/world.h"
#include "tune/drive/journaled_controller.h"

namespace tune::simulator {

class SimulatedDriver {
 public:
  // What is to be known about each turn while it is carried out.
  class Witness {
   public:
    virtual ~Witness() = default;
    virtual void replayed(const SimulatedDriver& driver) = 0;
    virtual void before_turn(const SimulatedDriver& driver, const Turn& turn) = 0;
    virtual void after_turn(const SimulatedDriver& driver, const Turn& turn,
                            const Effects& effects) = 0;
    virtual void before_command(const SimulatedDriver& driver, const Command& command) = 0;
    virtual void before_acknowledgement(const SimulatedDriver& driver) = 0;
  };
  struct Outside {
    std::function<void(Identity, std::string)> send_frame;
    std::function<void()> wake;  // there are steps to take
    Witness* witness = nullptr;
  };
  // What a resume asks for.
  struct Wish {
    bool retry_errored = false;
    int num_samples = 1;
  };
  enum class Fate : std::uint8_t { kLives, kOver, kSuperseded, kStoreLost };

  SimulatedDriver(World& world, StoreContents& store, ResultFiles& files, Outside outside);

  void start(Wish wish);
  bool has_steps() const { return !steps_.empty(); }
  void step();  // the next one

  void hear_frame(Identity agent, std::string frame);
  void reconnected(Identity agent);
  void see_lost(Identity agent);
  void interrupt(int signal);
  void end();  // nothing of it happens any more
  // Another driver has taken over, and with it the lock on the folder: what is still written goes
  // to files of its own, and what it does not know there is not put in order.
  void leave_files() {
    has_left_files_ = true;
    logger_.leave_files();
  }
  SimulatedStore& store() { return store_; }

  Fate fate() const { return fate_; }
  bool is_in_turn() const { return in_turn_; }  // effects are yet to come
  bool is_closed() const { return closed_; }    // over, and every agent is told to end
  const Controller& controller() const { return experiment_.controller(); }
  std::optional<AgentNumber> number_of(Identity agent) const;
  const ResultFiles& results() const { return logger_.results(); }
  // Events that are in the journal, and those that agents were told are.
  std::uint64_t received() const { return received_; }
  std::uint64_t committed() const { return committed_; }
  std::optional<EntryId> last_appended() const { return appended_; }
  std::optional<EntryId> read_up_to() const { return store_.read_up_to(); }
  std::uint64_t turns() const { return turns_; }
  std::uint64_t epoch() const { return epoch_; }
  const std::vector<std::string>& records() const { return records_; }  // of the last turn

 private:
  struct Peer {
    Identity identity;
    Link link;
    Time last_sent{};
    bool is_lost = false;
  };
  using Step = std::function<void()>;

  void plan(Step step);
  void do_next(std::vector<Step> steps);
  void give_up(const Error& error);
  void plan_turn();
  void plan_tick();
  void plan_deadline();
  void collect_and_commit();
  std::vector<Event> collect();
  std::vector<Event> receive();
  void commit(std::vector<Event> events);
  Effects take_over(const Turn& turn);
  void plan_effects(const Effects& effects);
  void keep_journal_short();
  void send(AgentNumber agent, const Command& command);
  void flush();
  void replay();
  void take_epoch(const Wish& wish);
  void close();
  void acknowledge();

  // Plants
  void distort(std::vector<Event>& events) const;
  void forget_releases(const std::vector<Trial>& ran);
  void launch_again(AgentNumber agent);

  Time now() const { return world_.queue.now(); }
  ExperimentTime experiment_now() const { return time_base_ + (now() - started_); }
  Plant plant() const { return world_.scenario.plant; }

  World& world_;
  Outside outside_;
  Life life_ = new_life();
  SimulatedStore store_;
  SimulatedLogger logger_;
  bool replaying_ = false;
  JournaledController experiment_;
  std::uint64_t epoch_ = 0;
  std::map<Identity, AgentNumber> numbers_;
  std::vector<Peer> peers_;
  std::deque<std::pair<Identity, std::string>> inbox_;
  std::vector<Identity> lost_;
  std::optional<int> signal_;
  std::deque<Step> steps_;
  std::vector<Trial> interrupted_;  // that ran when the driver before this one ended
  ExperimentTime time_base_{};
  Time started_{};
  bool is_listening_ = false;
  bool turn_is_planned_ = false;
  bool tick_is_planned_ = false;
  bool closed_ = false;
  bool in_turn_ = false;
  bool has_left_files_ = false;
  Fate fate_ = Fate::kLives;
  std::optional<Snapshot> snapshot_;  // taken, not stored yet
  std::optional<EntryId> appended_;
  std::uint64_t received_ = 0;
  std::uint64_t committed_ = 0;
  std::vector<std::string> records_;
  std::uint64_t turns_ = 0;
};

}  // namespace tune::simulator
