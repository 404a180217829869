// The processes of a driver, the private redis-server and the node agent, and how they end.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/join_token.h"
#include "core/platform/child.h"
#include "core/platform/node_claims.h"
#include "core/platform/other_process.h"
#include "core/platform/process.h"
#include "core/platform/redis_server.h"
#include "core/platform/runtime_directory.h"
#include "core/resources.h"
#include "tune/drive/driver.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/own_agent.h"

namespace tune {

// The agent of this node: a child of the driver, or one that has outlived the driver before. It
// ends itself, with all workers, when the driver's end of a socket closes, unless it is to outlive
// it.
class AgentProcess {
 public:
  struct Options {
    std::string driver_address;
    std::string stays_as;  // not empty: it outlives the driver, under this name
    std::filesystem::path runtime_directory;
    std::filesystem::path experiment_directory;
    NodeResources resources;
    ZygoteSource zygote;
    std::string zygote_loads;             // the plugin, or the program, in messages
    std::int64_t trial_memory_bytes = 0;  // of each trial; a limit where one can be set
    int lock_descriptor = -1;
    int runtime_lock_descriptor = -1;  // held by the agent as well
  };

  // Forks, and the child is the agent; in a process with other threads this program is executed
  // again as the agent, and zygote.in_process is not used (see core/agent/agent_program.h).
  explicit AgentProcess(const Options& options);
  // One that has outlived the driver that started it.
  AgentProcess(OtherProcess kept, std::string identity);
  ~AgentProcess();  // end_now()
  AgentProcess(const AgentProcess&) = delete;

  pid_t pid() const { return kept_ ? kept_->pid() : process_.pid(); }
  const std::string& identity() const { return identity_; }  // in the link to the driver
  int exit_descriptor() const;                               // readable once it has ended
  bool outlives_driver() const { return outlives_driver_; }
  // One that outlives its driver waits for a token, by which it joins.
  bool awaits_token() const { return outlives_driver_ && alive_.is_open(); }
  void tell(const JoinToken& token);
  // Whether the next driver will find it: one that was told nothing yet ends with this one.
  bool may_be_left() const { return kept_ || was_told_; }
  void signal(int number) const;
  // Waits for its end at most this long. The text says how the agent ended; empty while it runs.
  std::string wait(std::chrono::milliseconds limit);
  // Closes the socket, so that the agent ends all workers at once; then waits, and kills it when it
  // takes too long. One that outlives its driver has been told to end by then.
  void end_now(std::chrono::milliseconds limit = kEndLimit);
  void let_go();  // to the next driver

  static constexpr std::chrono::seconds kEndLimit{12};  // workers get SIGTERM, 5 s, SIGKILL

 private:
  bool has_ended(std::chrono::milliseconds limit);

  FileDescriptor alive_;  // one end; the agent has the other one
  Child process_;
  std::optional<OtherProcess> kept_;  // instead of that
  std::string identity_;
  bool outlives_driver_ = false;
  bool was_told_ = false;
};

// The start of the driver's own agent.
AgentProcess::Options own_agent(const RunRequest& request, const NodeResources& node,
                                const ExperimentFolder& folder, const RuntimeDirectory& runtime);
// The origin of workers, on this node and on those that join.
ZygoteSource zygote_of(const RunRequest& request, const NodeResources& node);
// Where the driver listens for an own agent that ends with it.
std::string address_in(const RuntimeDirectory& runtime);

// The agent that a driver before this one has left on this host, if it can go on under this one. If
// it cannot, and if its processes are still ending, waits until it is gone; the folder's lock gives
// signs of life meanwhile. Throws Error (kBadInput), and as show_life().
std::optional<OtherProcess> kept_agent(const OwnAgent& agent, ExperimentFolder& folder,
                                       const RunOptions& options, const OwnAgent::Notice& notice);
// Lets an agent that waits to be one go, as there is one already.
void turn_away(const ZygoteSource& zygote);

// Refuses an address that this machine does not have, before anything is written, started or told
// to end: trials of a driver before this one go on. A resume may name another one.
void check_addresses(const RunRequest& request);
// Refuses an experiment that could never run here, before anything is written or started.
NodeResources checked_node(const RunRequest& request);
// The claim of a sweep in that folder on this node: GPUs of other sweeps are not handed out again;
// their CPUs are, with a notice. It waits for GPUs when the spec says so.
ClaimRequest claim_of(const std::filesystem::path& sweep, const ExperimentSpec& spec,
                      const NodeResources& node);

}  // namespace tune
