#include "every_step.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "skip.h"

namespace tune::testing {

namespace {

constexpr int kNotTraced = 77;

[[noreturn]] void be_traced(const std::function<void()>& body) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNotTraced);
  raise(SIGSTOP);
  body();
  _exit(0);
}

// Lets it run to its next stop; false when it has ended instead.
bool goes_on(pid_t pid, int& status) {
  return ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr) == 0 && waitpid(pid, &status, 0) == pid &&
         WIFSTOPPED(status);
}

}  // namespace

std::optional<bool> is_killed_at_step(int n, const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) be_traced(body);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFSTOPPED(status)) return std::nullopt;
  for (int i = 0; i < n; ++i) {
    if (!goes_on(pid, status)) return false;
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return true;
}

int kill_at_every_step(const std::function<void()>& prepare, const std::function<void()>& body,
                       const std::function<void(bool killed)>& check) {
  for (int n = 1;; ++n) {
    prepare();
    const std::optional<bool> killed = is_killed_at_step(n, body);
    if (!killed) {
      skip("processes may not be traced here");
      return 0;
    }
    check(*killed);
    if (!*killed) return n - 1;
  }
}

}  // namespace tune::testing
