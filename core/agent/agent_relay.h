// AgentRelay: the relay of an agent (relay_link.h) between its machine's actions and outcomes.
#pragma once

#include <map>
#include <string>

#include "core/agent/agent_machine.h"
#include "core/agent/relay_link.h"
#include "core/agent_contract.h"

namespace tune {

class AgentRelay {
 public:
  static constexpr AgentTime kReach = std::chrono::seconds(20);  // for the first answer

  // `driver_address`: where the agent reaches its driver, "10.0.0.1:7000".
  AgentRelay(AgentTime now, const JoinToken& token, const std::string& driver_address,
             const SetupExperiment& experiment);

  const std::filesystem::path& folder() const { return link_.folder(); }
  // The other side has answered, and what was to be fetched before all else is here.
  bool is_ready() const { return is_reached_ && !fetches_plugin_; }
  // The reason why the agent cannot take part; empty: it may.
  std::string why_unfit(AgentTime now) const;
  // Once a turn of the agent's loop: the driver may be elsewhere by now.
  void look(const JoinToken& token, const std::string& driver_address, std::uint32_t port);

  // Before is_ready().
  void fetch_plugin(const JoinedSetup& setup);
  const std::string& plugin() const { return plugin_; }  // the fetched file; empty: none was

  void act(const StoreCheckpoint& action);
  void act(const FetchCheckpoint& action);
  void act(const GiveUpCheckpoints& action);
  void act(const GiveUpRelay& action);
  void follow(const WorkerLaunch& launch);
  // The attempt has ended: tells the machine when its output is where it belongs.
  void conclude(AgentMachine& machine, AgentTime now, const AttemptEnded& ended);

  int descriptor() const { return link_.descriptor(); }
  // Notices are for the driver.
  std::vector<std::string> take_outcomes(AgentMachine& machine, AgentTime now);

 private:
  std::string experiment_id_;
  std::string experiment_directory_;  // the driver's
  std::string address_;
  AgentTime reach_until_;
  bool is_reached_ = false;
  bool fetches_plugin_ = false;
  std::string plugin_;
  std::string plugin_of_driver_;  // its path there
  std::string why_no_plugin_;
  std::map<std::uint64_t, AttemptEnded> followed_;  // by attempt_key; filled when it has ended
  RelayLink link_;
};

}  // namespace tune
