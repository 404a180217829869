#include "core/platform/child.h"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

namespace tune {
namespace {

using std::chrono::seconds;

constexpr seconds kLong{60};

pid_t forked(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    std::signal(SIGTERM, SIG_DFL);  // doctest has a handler
    body();
    _exit(0);
  }
  return pid;
}

[[noreturn]] void stay() {
  for (;;) pause();
}

bool is_reaped(pid_t pid) {
  return waitpid(pid, nullptr, WNOHANG) < 0 && errno == ECHILD;
}

TEST_CASE("a child's end can be waited for and is known from then on") {
  Child child(forked([] { _exit(7); }));
  const pid_t pid = child.pid();
  pollfd watched{child.descriptor(), POLLIN, 0};
  CHECK(poll(&watched, 1, 60'000) == 1);
  CHECK(child.is_running());  // until it is reaped
  CHECK(WEXITSTATUS(child.wait()) == 7);
  CHECK_FALSE(child.is_running());
  CHECK(child.descriptor() == -1);
  CHECK(child.pid() == pid);
  CHECK(WEXITSTATUS(child.status()) == 7);
  CHECK(WEXITSTATUS(child.wait()) == 7);
  CHECK(child.has_ended());
  CHECK(is_reaped(pid));
}

TEST_CASE("a child that runs has not ended; one that does is reaped by the question") {
  Child child(forked(stay));
  CHECK_FALSE(child.has_ended());
  child.signal(SIGKILL);
  CHECK(child.has_ended(kLong));
  CHECK(WTERMSIG(child.status()) == SIGKILL);
  CHECK(is_reaped(child.pid()));
}

TEST_CASE("a child is asked to end, also one that is stopped, and is killed when it does not") {
  Child stopped(forked([] {
    raise(SIGSTOP);
    stay();
  }));
  waitpid(stopped.pid(), nullptr, WUNTRACED);
  CHECK(WTERMSIG(stopped.end(kLong)) == SIGTERM);
  Child deaf(forked([] {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, nullptr);
    raise(SIGSTOP);
    stay();
  }));
  waitpid(deaf.pid(), nullptr, WUNTRACED);
  CHECK(WTERMSIG(deaf.end({})) == SIGKILL);
}

TEST_CASE("a child that is left behind is killed and reaped, once") {
  pid_t pid = 0;
  {
    Child child(forked(stay));
    pid = child.pid();
    Child moved(std::move(child));
    Child assigned;
    assigned = std::move(moved);
    CHECK(assigned.is_running());
    CHECK_FALSE(child.is_running());  // NOLINT: what is moved from is none
  }
  CHECK(is_reaped(pid));
}

TEST_CASE("a child that is let go is neither killed nor waited for") {
  pid_t pid = 0;
  {
    Child child(forked(stay));
    pid = child.pid();
    child.let_go();
    CHECK_FALSE(child.is_running());
    CHECK(child.descriptor() == -1);
  }
  CHECK(waitpid(pid, nullptr, WNOHANG) == 0);  // it runs
  kill(pid, SIGKILL);
  CHECK(waitpid(pid, nullptr, 0) == pid);
}

TEST_CASE("a status that another has taken is no reason to wait") {
  Child child(forked([] { _exit(3); }));
  waitpid(child.pid(), nullptr, 0);
  CHECK(child.has_ended(kLong));
}

TEST_CASE("one signal reaches all of a child's process group") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  Child leader(forked([&] {
    setsid();
    forked(stay);
    if (write(ends[1], "x", 1) == 1) stay();
  }));
  close(ends[1]);
  char byte = 0;
  CHECK(read(ends[0], &byte, 1) == 1);
  leader.signal_group(SIGKILL);
  CHECK(WTERMSIG(leader.wait()) == SIGKILL);
  CHECK(read(ends[0], &byte, 1) == 0);  // the other had it open, too
  close(ends[0]);
}

}  // namespace
}  // namespace tune
