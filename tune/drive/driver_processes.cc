#include "tune/drive/driver_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "core/agent/agent.h"
#include "core/agent/agent_program.h"
#include "core/error.h"
#include "core/platform/node.h"

namespace tune {

namespace {

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), signal_name(WTERMSIG(status)));
  }
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

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
  agent.zygote_environment = options.zygote.environment;
  agent.zygote_loads = options.zygote_loads;
  agent.zygote_log = options.experiment_directory / "zygote.log";
  agent.trial_memory_bytes = options.trial_memory_bytes;
  agent.lock_fd = options.lock_descriptor;
  return agent;
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
  if (thread_count() > 1) {
    agent.zygote = nullptr;
    pid_ = start_agent_program(agent);
  } else {
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) {
      throw Error(ErrorCode::kProcess,
                  fmt::format("starting the node agent: fork: {}", std::strerror(errno)));
    }
    if (pid_ == 0) {
      alive_.reset();
      be_agent(agent);
    }
  }
  exit_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

AgentProcess::~AgentProcess() { end_now(); }

std::string AgentProcess::identity() const { return agent_identity(hostname(), pid_); }

std::string AgentProcess::wait(std::chrono::milliseconds limit) {
  if (!ended_.empty() || pid_ <= 0) return ended_;
  pollfd watched{exit_.get(), POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    int status = 0;
    const pid_t done = waitpid(pid_, &status, WNOHANG);
    if (done == pid_) return ended_ = how_it_ended(status);
    // Somebody else in this process (a handler of SIGCHLD, say) has taken the status.
    if (done < 0 && errno == ECHILD) return ended_ = "ended";
    if (left.count() <= 0) return {};
  }
}

void AgentProcess::end_now(std::chrono::milliseconds limit) {
  if (pid_ <= 0 || !ended_.empty()) return;
  alive_.reset();
  kill(pid_, SIGCONT);  // one that is stopped ends in order as well
  if (wait(limit).empty()) {
    kill(pid_, SIGKILL);
    wait(kEndLimit);
  }
}

}  // namespace tune
