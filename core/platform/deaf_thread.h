// A helper thread of a process that watches signals: no signal is delivered to it.
#pragma once

#include <signal.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"

namespace tune {

// While it lives, signals to this thread wait.
class Deafness {
 public:
  Deafness() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former_);
  }
  ~Deafness() { pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  Deafness(const Deafness&) = delete;

 private:
  sigset_t former_;
};

// Throws Error (kProcess) when there can be no further thread.
template <class Work>
std::thread deaf_thread(Work work) {
  const Deafness deafness;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kProcess, std::string("starting a thread: ") + error.what() +
                                         ": raise the limit on processes (ulimit -u)");
  }
}

}  // namespace tune
