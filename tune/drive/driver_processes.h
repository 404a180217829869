// The processes of a driver, the private redis-server and the node agent, and how they end.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/platform/child.h"
#include "core/platform/process.h"
#include "core/platform/redis_server.h"
#include "core/platform/runtime_directory.h"
#include "core/resources.h"
#include "tune/drive/driver.h"
#include "tune/results/experiment_folder.h"

namespace tune {

// The agent of this node, a child of the driver. It ends itself, with all workers, when the
// driver's end of a pipe closes.
class AgentProcess {
 public:
  struct Options {
    std::string driver_address;
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
  ~AgentProcess();  // end_now()
  AgentProcess(const AgentProcess&) = delete;

  pid_t pid() const { return process_.pid(); }
  std::string identity() const;  // its name in the link to the driver
  int exit_descriptor() const { return process_.descriptor(); }  // readable once it has ended
  // Waits for its end at most this long. The text says how the agent ended; empty while it runs.
  std::string wait(std::chrono::milliseconds limit);
  // Closes the pipe, so that the agent ends all workers at once; then waits, and kills it when it
  // takes too long.
  void end_now(std::chrono::milliseconds limit = kEndLimit);

  static constexpr std::chrono::seconds kEndLimit{12};  // workers get SIGTERM, 5 s, SIGKILL

 private:
  FileDescriptor alive_;  // write end
  Child process_;
};

// The start of the driver's own agent.
AgentProcess::Options own_agent(const RunRequest& request, const NodeResources& node,
                                const ExperimentFolder& folder, const RuntimeDirectory& runtime);

// Refuses an experiment that could never run here, before anything is written or started.
NodeResources checked_node(const RunRequest& request);
// The part of `node` that this sweep may use: GPUs of other sweeps are not handed out again; their CPUs are,
// with a notice. Waits for GPUs when the spec says so.
NodeResources claimed_node(const RuntimeDirectory& runtime, const std::filesystem::path& sweep,
                           const ExperimentSpec& spec, const NodeResources& node);

}  // namespace tune
