// Shared by the tests of the edges: variables of the environment and children with a body.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/platform/process.h"

namespace tune::testing {

// Sets a variable of the environment, or removes it, until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* former = std::getenv(name)) former_ = former;
    set(value);
  }
  ~ScopedVariable() { set(former_); }
  ScopedVariable(const ScopedVariable&) = delete;

 private:
  void set(const std::optional<std::string>& value) {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> former_;
};

// A forked process that runs `body` and then lives until it is ended.
class Child {
 public:
  enum Return { kWhenReady, kAtOnce };  // the constructor: when `body` has run, or at once

  explicit Child(const std::function<void()>& body, Return when = kWhenReady) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("pipe");
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ready[0]);
      try {
        body();
      } catch (...) {
        ::_exit(1);  // the rest of the tests is not the child's
      }
      ::signal(SIGPIPE, SIG_IGN);
      [[maybe_unused]] const auto count = ::write(ready[1], "r", 1);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    if (when == kWhenReady && ::read(ready[0], &byte, 1) != 1) {
      throw std::runtime_error("the child did not get ready");
    }
    ::close(ready[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void end() {  // without any cleaning up
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

// Whether the condition comes true within a generous time.
inline bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 10000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace tune::testing
