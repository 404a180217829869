// A child process that looks after others. It and this process watch each other: whichever is
// killed, the other ends all that the child has started.
#pragma once

#include <sys/types.h>

#include <functional>

#include "core/platform/process.h"

namespace tune {

class KeptProcess {
 public:
  // Forks; `body` runs in the child, in a session of its own, and gives its exit code (what it
  // throws is printed, with exit code 3 or that of a tune::Error). It gets a descriptor that
  // becomes readable when this process is gone. When it returns, all descendants of the child are
  // ended. Throws Error (kProcess).
  explicit KeptProcess(const std::function<int(int alive)>& body);
  ~KeptProcess();  // a child that lives is told, and ends at once with all it has started
  KeptProcess(const KeptProcess&) = delete;

  pid_t pid() const { return pid_; }
  int descriptor() const { return exit_.get(); }  // readable when the child has ended
  int wait();                                     // until it has; its wait status

 private:
  pid_t pid_ = -1;
  FileDescriptor alive_;
  FileDescriptor exit_;
};

}  // namespace tune
