#include "trainables/checkpoint_writing.h"

#include <signal.h>

#include <utility>

#include "core/error.h"

namespace tune {

namespace {

// Signals are for the main thread: a thread that is begun meanwhile gets none.
struct NoSignals {
  sigset_t former;
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &former, nullptr); }
};

}  // namespace

void CheckpointWriting::begin(std::function<void()> write) {
  TUNE_CHECK(!thread_.joinable());
  is_over_ = false;
  const NoSignals no_signals;
  thread_ = std::thread([this, write = std::move(write)]() mutable {
    try {
      write();
    } catch (...) {
      failure_ = std::current_exception();
    }
    write = nullptr;  // the copies are free for the next checkpoint
    is_over_ = true;
  });
}

void CheckpointWriting::wait() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CheckpointWriting::look() {
  if (is_over_) wait();
}

void CheckpointWriting::end() {
  if (thread_.joinable()) thread_.join();
  failure_ = nullptr;
}

}  // namespace tune
