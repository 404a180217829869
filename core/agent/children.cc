#include "core/agent/children.h"

#include <sys/signalfd.h>
#include <sys/wait.h>

#include <csignal>

namespace tune {

FileDescriptor watch_signals(bool has_joined) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, signal);
  if (has_joined) sigaddset(&watched, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  return FileDescriptor(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::vector<Reaped> reap(pid_t zygote) {
  std::vector<Reaped> all;
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return all;
    if (info.si_pid != zygote) ::kill(-info.si_pid, SIGKILL);
    int status = 0;
    ::waitpid(info.si_pid, &status, 0);
    all.push_back({info.si_pid, status});
  }
}

ProcessEnd process_end(int status) {
  const bool signalled = WIFSIGNALED(status);
  return {signalled, signalled ? WTERMSIG(status) : WEXITSTATUS(status), describe_exit(status)};
}

void Strays::add(pid_t pid, ProcessEnd end) {
  strays_.emplace_back(pid, std::move(end));
  if (strays_.size() > kMost) strays_.pop_front();
}

std::optional<ProcessEnd> Strays::take(pid_t pid) {
  for (auto stray = strays_.begin(); stray != strays_.end(); ++stray) {
    if (stray->first != pid) continue;
    ProcessEnd end = std::move(stray->second);
    strays_.erase(stray);
    return end;
  }
  return std::nullopt;
}

}  // namespace tune
