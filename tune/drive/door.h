// Door: how machines, and an own agent that outlives its driver, join a running experiment: where
// the driver listens, by which keys and token, what a machine has to know, and the requests about
// them (`tune drain`, `tune token`).
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agent/relay_host.h"
#include "core/agent_contract.h"
#include "core/platform/file_worker.h"
#include "core/platform/join_keys.h"
#include "core/platform/transport.h"
#include "tune/control/controller.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/requests.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

struct ZygoteSource;

class Door {
 public:
  // A replaced join key opens for so long beside the new one, and until each machine that has
  // joined has the new one, or is lost.
  static constexpr std::chrono::seconds kRotation{3};
  static constexpr std::chrono::seconds kParting{3};

  // Reads or makes the experiment's keys. Throws Error (kBadInput) when it cannot listen as the
  // spec says, and for keys that others may read.
  // A new experiment takes them from the file `shared`, if that is not empty.
  Door(const ExperimentSpec& spec, const std::filesystem::path& experiment,
       const std::filesystem::path& shared);

  // Completes what machines need to know. Writes the file that proves to them that they see the
  // folder, and, if machines may join, a copy of the plugin beside it; listens then for checkpoints
  // and output of those that do not see it.
  void complete(JoinedSetup& setup, const ZygoteSource& zygote);
  // Listens, at the port of the last time if that is free and no other is asked for, and writes the
  // keys with the addresses. Takes requests about `nodes`, which stay.
  void open(DriverEndpoint& endpoint, Requests& requests, const Nodes& nodes);
  // Machines that the driver before this one had are to come back with what runs there. Call it
  // when this one has taken over, before it hears anything.
  void expect(std::uint64_t epoch, const Controller& controller, DriverMachine& machine,
              std::chrono::nanoseconds now);
  // What was told, in its order, as it is to be journaled: what such a machine told nobody else yet
  // may be of another folder. Until it has greeted this driver, a checkpoint that is not in this
  // driver's folder is not stored. The disk is asked for it beside the loop. Until it has answered
  // what was told later is kept back, and no more is to be read.
  std::vector<Peers::Told> checked(std::vector<Peers::Told> told);
  bool is_looking() const { return is_looking_; }
  int descriptor() const { return looks_ ? looks_->descriptor() : -1; }  // readable: call checked()
  int port() const;                                                      // where it listens
  int relay_port() const { return keys_.relay_port; }  // where it takes checkpoints
  // The token in the join file, nodes/join of the experiment, has other addresses than those that
  // the driver listens at.
  void set_join_addresses(std::vector<std::string> addresses);
  std::uint64_t tokens_written() const { return tokens_written_; }  // into the join file, so far
  // For an agent on this host.
  JoinToken token() const { return token_of(keys_, experiment_id_); }
  // The line to paste on another machine.
  std::string invitation() const;

  // A machine that was lost is heard again.
  void dismiss(AgentNumber agent);
  // Lets a replaced key go. Call it now and then.
  void look(const Nodes& nodes, std::chrono::nanoseconds now);
  std::vector<std::string> take_refused();  // where it takes checkpoints
  // The answer is for the user. Throws as find_node().
  std::string drain(const Value& request, const Nodes& nodes);
  // Waits so long for keys that are being written; false: they are not yet.
  bool await_keys(std::chrono::milliseconds limit) const;
  // All is over. Machines were told; those that were not heard find that the join file is gone.
  // Waits for keys that are being written.
  void close() const;
  // Waits a little until machines know.
  void part(const Nodes& nodes) const;

 private:
  void write_join_file();
  std::string join_text(const JoinKeys& keys) const;
  std::shared_future<std::string> rotate();
  void write_beside(JoinKeys fresh);
  void take_written(std::chrono::nanoseconds now);
  bool all_have_the_key(const Nodes& nodes);
  bool begins_look(const Peers::Told& told);
  void take_look(bool is_there);

  std::filesystem::path experiment_;
  std::string experiment_id_;
  std::string mark_;     // of the experiment alone
  bool takes_machines_;  // else only the driver's own agent joins
  bool own_agent_stays_;
  ListenAddress listen_;
  std::vector<std::string> addresses_;  // of this machine, without ports
  JoinKeys keys_;
  std::optional<RelayHost> relay_;
  bool is_kept_ = false;  // the keys were there already
  std::filesystem::path join_file_;
  std::vector<std::string> join_addresses_;  // in it, instead of the driver's own
  std::uint64_t tokens_written_ = 0;
  DriverEndpoint* endpoint_ = nullptr;
  std::chrono::nanoseconds rotation_ends_{};  // not before
  std::set<AgentNumber> told_;                // the new key
  JoinKeys fresh_;                            // that are being written
  std::shared_future<std::string> written_;   // not valid: none are
  bool keeps_checkpoints_;                    // in the folder
  std::uint64_t epoch_ = 0;                   // of this driver
  std::set<AgentNumber> awaited_;             // they have not greeted it yet
  std::deque<Peers::Told> kept_back_;         // behind a look, which is for the first
  std::unique_ptr<FileWorker> looks_;         // null: there was none
  bool is_looking_ = false;
  bool has_looked_ = false;  // and the first is stored
};

// The addresses, without ports, at which others reach this machine, of those that the options name.
// Throws Error (kBadInput) where it has none of them.
std::vector<std::string> addresses_here(const RunOptions& options);

// The node that a user means by its hostname, hostname:pid where several agents run on one host, or
// the name of its allocation. Throws Error (kBadInput) naming those there are.
AgentNumber find_node(const Nodes& nodes, const std::string& name);
// Its name for people and for find_node.
std::string node_name(const Nodes& nodes, AgentNumber agent);

}  // namespace tune
