#include "core/platform/forked_rank.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "core/error.h"
#include "core/freed_memory.h"
#include "core/platform/node.h"
#include "core/platform/process.h"
#include "core/platform/rank_place.h"
#include "core/rank_start.h"
#include "core/spawn.h"

namespace tune {

namespace {

void become_rank(const ForkedRanks& ranks, int rank, int output, int errors) {
  for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
  setsid();
  keep_freed_memory();
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // output is seen while the rank runs
  auto environment = started_rank_environment(ranks.place, rank);
  if (!ranks.use_gpu) {
    environment["CUDA_VISIBLE_DEVICES"] = "";
    add_bucket_memory(environment, [](const std::string& name) { return std::getenv(name.c_str()) != nullptr; });
  }
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  if (rank == 0) {
    setenv(kRendezvousVariable, std::to_string(ranks.rendezvous).c_str(), 1);
  } else {
    close(ranks.rendezvous);
    unsetenv(kRendezvousVariable);
  }
  if (ranks.memory >= 0) {
    setenv(kSharedMemoryVariable, std::to_string(ranks.memory).c_str(), 1);
  } else {
    unsetenv(kSharedMemoryVariable);
  }
  begin_rank();
}

}  // namespace

pid_t fork_rank(const ForkedRanks& ranks, int rank, int output, int errors,
                const std::function<int()>& body) {
  if (ranks.use_gpu) name_visible_gpus();  // once for all ranks: asking the driver takes long
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    throw Error(ErrorCode::kProcess,
                fmt::format("starting rank {}: fork: {}", rank, std::strerror(errno)));
  }
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  try {
    become_rank(ranks, rank, output, errors);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    _exit(1);
  }
  const int code = body();
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
}

void check_fit_to_fork(const char* who) {
  const std::string unfit = why_unfit_to_fork();
  if (unfit.empty()) return;
  throw Error(
      ErrorCode::kProcess,
      fmt::format("{}: this program cannot be forked for the ranks ({}): call it before the "
                  "program starts threads or touches CUDA",
                  who, unfit));
}

}  // namespace tune
