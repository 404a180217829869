// A child process that looks after others. It and this process watch each other: when either is
// killed, the other ends everything that the child has started.
#pragma once

#include <sys/types.h>

#include <functional>

#include "core/platform/child.h"
#include "core/platform/process.h"

namespace tune {

// A descriptor for this process alone: the children of any KeptProcess begin by closing it. So the
// holder of the other end notices when this process closes it or is killed.
class PrivateDescriptor : public FileDescriptor {
 public:
  explicit PrivateDescriptor(int descriptor = -1);
  PrivateDescriptor(PrivateDescriptor&& other) noexcept;
  PrivateDescriptor& operator=(PrivateDescriptor&& other) noexcept = default;
  ~PrivateDescriptor();
};

class KeptProcess {
 public:
  // Forks; `body` runs in the child, in a session of its own, and gives its exit code (an exception
  // is printed; the exit code is then 3 or that of a tune::Error). `body` gets a descriptor that
  // becomes readable when this process is gone. When it returns, all descendants of the child are
  // ended. Throws Error (kProcess).
  explicit KeptProcess(const std::function<int(int alive)>& body);
  ~KeptProcess();  // a child that lives is told, and ends at once with all it has started
  KeptProcess(const KeptProcess&) = delete;

  pid_t pid() const { return child_.pid(); }
  int descriptor() const { return child_.descriptor(); }  // readable when the child has ended
  int wait() { return child_.wait(); }                    // until it has; its wait status

 private:
  PrivateDescriptor alive_;
  Child child_;
};

}  // namespace tune
