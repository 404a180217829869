// AgentRelay: what carries an agent's checkpoints and output, between its machine's actions and
// outcomes. Where the agent does not see the experiment's folder that is the relay (relay_link.h);
// checkpoints of an experiment that keeps them in an object store go there (object_link.h), from
// every agent.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent_machine.h"
#include "core/agent/object_link.h"
#include "core/agent/relay_link.h"
#include "core/agent_contract.h"

namespace tune {

class AgentRelay {
 public:
  static constexpr AgentTime kReach = std::chrono::seconds(20);  // for the first answer

  // An agent that does not see the experiment's folder. Throws Error (kBadInput, kIo, kProcess).
  struct Driver {
    std::string address;    // where the agent reaches it, "10.0.0.1:7000"
    std::string mark = {};  // that it has told
  };
  AgentRelay(AgentTime now, const JoinToken& token, const Driver& driver,
             const SetupExperiment& experiment);
  // One that sees it: only its checkpoints are carried, to the object store. Without a log of its
  // own it is the driver's agent, and the driver has proved the store.
  AgentRelay(AgentTime now, const SetupExperiment& experiment, const std::string& zygote_log);

  const std::filesystem::path& folder() const { return folder_; }
  bool sees_experiment() const { return !link_; }
  const std::string& zygote_log() const { return zygote_log_; }
  // The other sides have answered, and what was to be fetched before all else is here.
  bool is_ready() const { return is_reached() && !fetches_plugin_; }
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
  void act(const ReadTail& action);
  // The first rank of the attempt on this node begins; so many of them are here.
  void follow(const StartWorker& start);
  // The attempt has ended: tells the machine when its output is where it belongs.
  void conclude(AgentMachine& machine, AgentTime now, const AttemptEnded& ended,
                std::uint32_t node);

  // Readable while there are outcomes; -1: there is none of these.
  int descriptor() const { return link_ ? link_->descriptor() : -1; }
  int object_descriptor() const { return objects_ ? objects_->descriptor() : -1; }
  // Notices are for the driver.
  std::vector<std::string> take_outcomes(AgentMachine& machine, AgentTime now);

 private:
  bool is_reached() const { return awaited_ == 0 && why_refused_.empty(); }
  void prove_objects(const SetupExperiment& experiment);

  std::string experiment_id_;
  std::string experiment_directory_;  // the driver's
  std::string object_address_;        // empty: none
  std::string address_;
  std::filesystem::path folder_;
  std::string zygote_log_;
  AgentTime reach_until_;
  bool fetches_plugin_ = false;
  std::string plugin_;
  std::string plugin_of_driver_;  // its path there
  std::string plugin_fingerprint_;
  std::string why_no_plugin_;
  int awaited_ = 0;  // first answers
  bool is_of_clock_ = false;
  std::string why_refused_;                         // by the object store
  std::map<std::uint64_t, AttemptEnded> followed_;  // by attempt_key; filled when it has ended
  std::optional<RelayLink> link_;
  std::optional<ObjectLink> objects_;
};

}  // namespace tune
