// One simulated experiment, from its first driver until every trial is over: cluster, accidents and
// the lives of its drivers. The same scenario gives the same events, one by one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/connection.h"
#include "simulator/invariants.h"
#include "simulator/simulated_agent.h"
#include "simulator/simulated_driver.h"
#include "simulator/violation.h"
#include "simulator/world.h"

namespace tune::simulator {

struct Verdict {
  std::optional<Violation> violation;
  std::uint64_t events = 0;
  std::string journal;  // every entry ever appended
  Tally tally;          // what was met on the way
};

class Simulation {
 public:
  Simulation(Scenario scenario, bool traced);
  Verdict run();

 private:
  using Serial = std::size_t;  // of a driver: 0, 1, 2 ...
  struct Driver {
    std::unique_ptr<SimulatedDriver> process;
    std::shared_ptr<char> life = new_life();
    int steps = 0;
    bool is_planned = false;
    bool is_in_step = false;  // waits for the store, perhaps
    bool is_removed = false;  // when it is back from there
    bool is_stalled = false;
    bool is_leaving = false;  // over or ending, waits for its agents
    bool is_closed = false;   // in order
  };
  struct Node {
    std::unique_ptr<SimulatedAgent> agent;
    std::unique_ptr<Connection> connection;
  };

  void happen();
  void wait(Time duration);
  Time longest_wait() const;
  void start_driver();
  void start_agent(std::size_t node);
  void connect(Identity identity, Serial serial);
  void reconnect(Identity identity);
  void all_agents_are_gone() const;
  void plan_advance(Serial serial);
  void advance(Serial serial);
  void part_files(const Driver& leader);
  bool meets_its_end(Serial serial);
  void check_fate(Serial serial);
  void remove(Serial serial);
  void remove_all_but(Serial serial);
  void leave(bool agents_die);
  void end_agents(bool at_once);
  ZygoteFate failing_fate(bool again);
  void agent_gone(Identity identity);
  void driver_gone();
  void wake(Serial stalled);
  void meet(const AccidentPlan& accident);
  void give(const OrderPlan& plan);
  void come_back();
  SimulatedLinks::Ends ends_of_links();
  SimulatedAgent* agent_of(Identity identity);
  SimulatedAgent* any_agent();
  void hang(SimulatedAgent& agent);
  void cut_off(SimulatedAgent& agent);
  SimulatedDriver* driver(Serial serial);
  Connection* way_to(Identity agent, Serial from);
  const DriverLife& plan() const { return world_.scenario.life(serial_); }

  World world_;
  StoreContents store_;
  ResultFiles files_;
  SimulatedLinks links_;
  Invariants invariants_;
  std::map<Serial, Driver> drivers_;  // the newest, and one that stalls
  Serial serial_ = 0;                 // of the newest
  std::map<Identity, Node> nodes_;
  std::vector<std::unique_ptr<Connection>> broken_;  // on which frames may still be under way
  Identity last_identity_ = 0;
  int zygotes_ = 0;                         // the first ones of nodes, under this driver
  std::map<Identity, std::size_t> places_;  // the node of every agent there was
  SimulatedDriver::Wish wish_;
  std::uint64_t events_ = 0;
  std::size_t progress_ = 0;  // entries and drivers so far
  Time last_progress_{};
  bool finished_ = false;
  bool comes_back_ = false;  // a user for whom the sweep waits
  Life life_ = new_life();
};

// Runs the scenario of this seed, `traced` when wanted.
struct RunOptions {
  std::uint64_t seed = 0;
  Limits limits{};
  bool traced = false;
};
Verdict simulate(const RunOptions& options);

}  // namespace tune::simulator
