// A helper thread of a process that watches signals: no signal is delivered to it.
#pragma once

#include <signal.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"

namespace tune {

// Throws Error (kProcess) when there can be no further thread.
template <class Work>
std::thread deaf_thread(Work work) {
  struct Deaf {
    sigset_t former;
    Deaf() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &former);
    }
    ~Deaf() { pthread_sigmask(SIG_SETMASK, &former, nullptr); }
  } const deaf;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kProcess, std::string("starting a thread: ") + error.what() +
                                         ": raise the limit on processes (ulimit -u)");
  }
}

}  // namespace tune
