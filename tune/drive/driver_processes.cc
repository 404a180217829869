#include "tune/drive/driver_processes.h"

#include <signal.h>
#include <sys/socket.h>
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
#include "core/rank_start.h"
#include "tune/drive/door.h"
#include "tune/drive/experiment_start.h"
#include "tune/spec/command_options.h"
#include "tune/spec/pool_value.h"

namespace tune {

namespace {

AgentOptions agent_options(const AgentProcess::Options& options, int alive) {
  AgentOptions agent;
  agent.driver_address = options.driver_address;
  agent.driver_alive_fd = alive;
  agent.stays_as = options.stays_as;
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
  // The lock of its processes tells whether they are gone. Those that outlive the driver must not
  // keep the next one from the experiment.
  const bool stays = !options.stays_as.empty();
  agent.lock_fd = stays ? options.runtime_lock_descriptor : options.lock_descriptor;
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

AgentProcess::AgentProcess(const Options& options) : outlives_driver_(!options.stays_as.empty()) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making a socket: {}", std::strerror(errno)));
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
      if (outlives_driver_) ::close(options.lock_descriptor);
      be_agent(agent);
    }
    process_ = Child(pid);
  }
  identity_ = outlives_driver_ ? joined_identity(options.stays_as)
                               : agent_identity(hostname(), process_.pid());
}

AgentProcess::AgentProcess(OtherProcess kept, std::string identity)
    : kept_(std::move(kept)), identity_(std::move(identity)), outlives_driver_(true) {
  signal(SIGCONT);
}

AgentProcess::~AgentProcess() {
  end_now();
}

int AgentProcess::exit_descriptor() const {
  return kept_ ? kept_->descriptor() : process_.descriptor();
}

void AgentProcess::tell(const JoinToken& token) {
  const std::string text = to_text(token);
  ::send(alive_.get(), text.data(), text.size(), MSG_NOSIGNAL);  // to one that has ended: to nobody
  was_told_ = true;
}

void AgentProcess::signal(int number) const {
  kept_ ? kept_->signal(number) : process_.signal(number);
}

bool AgentProcess::has_ended(std::chrono::milliseconds limit) {
  return kept_ ? kept_->has_ended(limit) : process_.has_ended(limit);
}

std::string AgentProcess::wait(std::chrono::milliseconds limit) {
  if (!has_ended(limit)) return {};
  return kept_ ? "it has ended" : describe_exit(process_.status());
}

void AgentProcess::end_now(std::chrono::milliseconds limit) {
  alive_.reset();
  signal(SIGCONT);  // a stopped agent ends in order as well
  if (has_ended(limit)) return;
  signal(SIGKILL);
  if (!has_ended(kEndLimit)) let_go();
}

void AgentProcess::let_go() {
  kept_.reset();
  process_.let_go();
}

AgentProcess::Options own_agent(const RunRequest& request, const NodeResources& node,
                                const ExperimentFolder& folder, const RuntimeDirectory& runtime) {
  const ExperimentSpec& spec = request.spec;
  AgentProcess::Options agent;
  agent.driver_address = address_in(runtime);
  if (own_agent_stays(spec.options)) agent.stays_as = life_name();
  agent.runtime_directory = runtime.path();
  agent.experiment_directory = folder.absolute();
  agent.resources = node;
  agent.zygote = zygote_of(request, node);
  agent.zygote_loads = spec.python           ? spec.python->target
                       : spec.plugin.empty() ? "the program"
                                             : spec.plugin;
  agent.trial_memory_bytes = spec.request.memory_bytes;
  agent.lock_descriptor = folder.lock_descriptor();
  agent.runtime_lock_descriptor = runtime.lock_descriptor();
  return agent;
}

ZygoteSource zygote_of(const RunRequest& request, const NodeResources& node) {
  ZygoteSource zygote = request.zygote;
  if (zygote.command.empty() && !zygote.waiting_agent) {
    zygote.command = zygote_command(request.spec);
  }
  if (request.spec.request.gpu_units > 0) tell_of_gpu_trials(zygote, node);
  return zygote;
}

std::string address_in(const RuntimeDirectory& runtime) {
  return fmt::format("ipc://{}/driver", runtime.path().string());
}

std::optional<OtherProcess> kept_agent(const OwnAgent& agent, ExperimentFolder& folder,
                                       const RunOptions& options, const OwnAgent::Notice& notice) {
  if (agent.is_gone()) return std::nullopt;
  std::optional<OtherProcess> process = agent.process();
  const std::string why_not = process ? agent.why_not_kept(folder.absolute()) : "it has ended";
  if (why_not.empty()) return process;
  agent.end(from_seconds(options.save_grace_s), notice, [&folder] { show_life(folder); });
  return std::nullopt;
}

void turn_away(const ZygoteSource& zygote) {
  if (!zygote.waiting_agent) return;
  ::close(zygote.waiting_agent->order_socket);
  Child(zygote.waiting_agent->pid).wait();
}

void check_addresses(const RunRequest& request) try {
  if (awaits_agents(request.spec.options)) addresses_here(request.spec.options);
} catch (const Error& error) {
  if (request.resume.empty()) throw;
  throw Error(error.code(), fmt::format("{}; on another host: {} --listen ADDRESS[:PORT]",
                                        error.what(), how_to_resume(request.resume)));
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

ClaimRequest claim_of(const std::filesystem::path& sweep, const ExperimentSpec& spec,
                      const NodeResources& node) {
  ClaimRequest claim;
  claim.sweep = sweep;
  claim.node = node;
  if (spec.options.gpus) claim.visible = own_gpus();
  claim.needs_gpus = spec.request.gpu_units > 0;
  claim.waits = spec.options.wait_gpus;
  return claim;
}

}  // namespace tune
