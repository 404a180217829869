#include "tune/drive/driver_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "core/agent/agent.h"
#include "core/agent/agent_program.h"
#include "core/agent/joining.h"
#include "core/error.h"
#include "core/fitting.h"
#include "core/platform/node.h"
#include "core/platform/node_claims.h"
#include "core/rank_start.h"
#include "tune/spec/command_options.h"
#include "tune/spec/pool_value.h"

namespace tune {

namespace {

AgentOptions agent_options(const AgentProcess::Options& options, int alive) {
  AgentOptions agent;
  agent.driver_address = options.driver_address;
  agent.driver_alive_fd = alive;
  agent.runtime_directory = options.runtime_directory;
  agent.resources = options.resources;
  agent.hostname = hostname();
  agent.ip = primary_ip();
  agent.zygote = options.zygote.in_process;
  agent.zygote_command = options.zygote.command;
  agent.zygote_environment = zygote_environment_on(options.resources, options.zygote.environment);
  agent.zygote_loads = options.zygote_loads;
  agent.zygote_log = options.experiment_directory / "zygote.log";
  agent.trial_memory_bytes = options.trial_memory_bytes;
  agent.lock_fd = options.lock_descriptor;
  agent.runtime_lock_fd = options.runtime_lock_descriptor;
  return agent;
}

// The zygotes of this node and, by their environment, of those that join.
void tell_of_gpu_trials(ZygoteSource& zygote, const NodeResources& node) {
  zygote.environment[kGpuTrialsVariable] = "1";
  if (!zygote.in_process || node.gpus.empty()) return;
  zygote.in_process = [main = zygote.in_process](int control) {
    ::setenv(kGpuTrialsVariable, "1", 1);
    main(control);
  };
}

}  // namespace

AgentProcess::AgentProcess(const Options& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making a pipe: {}", std::strerror(errno)));
  }
  FileDescriptor read_end(ends[0]);
  alive_ = FileDescriptor(ends[1]);
  AgentOptions agent = agent_options(options, read_end.get());
  if (const auto& waiting = options.zygote.waiting_agent) {
    agent.zygote = nullptr;
    process_ = Child(waiting->pid);
    start_waiting_agent(*waiting, agent);
  } else if (thread_count() > 1) {
    agent.zygote = nullptr;
    process_ = Child(start_agent_program(agent));
  } else {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) {
      throw Error(ErrorCode::kProcess,
                  fmt::format("starting the node agent: fork: {}", std::strerror(errno)));
    }
    if (pid == 0) {
      alive_.reset();
      be_agent(agent);
    }
    process_ = Child(pid);
  }
}

AgentProcess::~AgentProcess() { end_now(); }

std::string AgentProcess::identity() const {
  return agent_identity(hostname(), pid());
}

std::string AgentProcess::wait(std::chrono::milliseconds limit) {
  return process_.has_ended(limit) ? describe_exit(process_.status()) : std::string();
}

void AgentProcess::end_now(std::chrono::milliseconds limit) {
  alive_.reset();
  process_.signal(SIGCONT);  // a stopped agent ends in order as well
  if (process_.has_ended(limit)) return;
  process_.signal(SIGKILL);
  if (!process_.has_ended(kEndLimit)) process_.let_go();
}

AgentProcess::Options own_agent(const RunRequest& request, const NodeResources& node,
                                const ExperimentFolder& folder, const RuntimeDirectory& runtime) {
  const ExperimentSpec& spec = request.spec;
  AgentProcess::Options agent;
  agent.driver_address = fmt::format("ipc://{}/driver", runtime.path().string());
  agent.runtime_directory = runtime.path();
  agent.experiment_directory = folder.absolute();
  agent.resources = node;
  agent.zygote = request.zygote;
  agent.zygote_loads = spec.python           ? spec.python->target
                       : spec.plugin.empty() ? "the program"
                                             : spec.plugin;
  if (agent.zygote.command.empty() && !agent.zygote.waiting_agent) {
    agent.zygote.command = zygote_command(spec);
  }
  if (spec.request.gpu_units > 0) tell_of_gpu_trials(agent.zygote, node);
  agent.trial_memory_bytes = spec.request.memory_bytes;
  agent.lock_descriptor = folder.lock_descriptor();
  agent.runtime_lock_descriptor = runtime.lock_descriptor();
  return agent;
}

NodeResources checked_node(const RunRequest& request) {
  const ExperimentSpec& spec = request.spec;
  const NodeResources node =
      request.node ? *request.node : discover_node({spec.options.cpus, spec.options.gpus});
  if (takes_machines(spec.options)) return node;  // another one may join
  if (const std::string never = why_never_on(node, spec.request); !never.empty()) {
    throw Error(ErrorCode::kBadInput, "resources_per_trial: " + never);
  }
  return node;
}

NodeResources claimed_node(const RuntimeDirectory& runtime, const std::filesystem::path& sweep,
                           const ExperimentSpec& spec, const NodeResources& node) {
  ClaimRequest claim;
  claim.sweep = sweep;
  claim.node = node;
  if (spec.options.gpus) claim.visible = own_gpus();
  claim.needs_gpus = spec.request.gpu_units > 0;
  claim.waits = spec.options.wait_gpus;
  // The reporter may make a thread: not before the agent is forked.
  claim.notice = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
  return claim_node(runtime, claim);
}

}  // namespace tune
