#include "core/platform/child.h"

#include <poll.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace tune {

Child::Child(pid_t pid) : pid_(pid), is_running_(true), exit_(process_descriptor(pid)) {}

Child::Child(Child&& other) noexcept {
  *this = std::move(other);
}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(is_running_, other.is_running_);
  std::swap(exit_, other.exit_);
  std::swap(status_, other.status_);
  return *this;
}

Child::~Child() {
  signal(SIGKILL);
  wait();
}

void Child::signal(int number) const {
  if (is_running()) kill(pid_, number);
}

void Child::signal_group(int number) const {
  if (is_running()) kill(-pid_, number);
}

bool Child::has_ended(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + patience;
  while (is_running_ && !reap(WNOHANG)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    pollfd watched{exit_.get(), POLLIN, 0};
    poll(&watched, 1, static_cast<int>(left.count()));
  }
  return true;
}

int Child::wait() {
  if (is_running_) reap(0);
  return status_;
}

void Child::let_go() {
  is_running_ = false;
  exit_.reset();
}

// False: it runs.
bool Child::reap(int options) {
  pid_t done = 0;
  do done = waitpid(pid_, &status_, options);
  while (done < 0 && errno == EINTR);
  // Other code in this process (a handler of SIGCHLD, say) may have taken the status.
  if (done == 0) return false;
  is_running_ = false;
  exit_.reset();
  return true;
}

int Child::end(std::chrono::milliseconds patience) {
  signal(SIGTERM);
  signal(SIGCONT);
  if (!has_ended(patience)) signal(SIGKILL);
  return wait();
}

}  // namespace tune
