// Child: a process that this one has started, until it is reaped. Its end can be waited for in a
// poll loop and is taken once; its status is known from then on.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include "core/platform/process.h"

namespace tune {

class Child {
 public:
  Child() = default;          // none
  explicit Child(pid_t pid);  // a child of this process that nobody else reaps
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  // one that runs is killed and reaped

  pid_t pid() const { return pid_; }               // stays when it has ended; -1: none
  int descriptor() const { return exit_.get(); }   // readable once it has ended; -1 when reaped
  bool is_running() const { return is_running_; }  // not reaped yet

  void signal(int number) const;        // none to one that is reaped
  void signal_group(int number) const;  // the whole process group that it leads
  // Whether the child has ended, after waiting at most this long; if so it is reaped.
  bool has_ended(std::chrono::milliseconds patience = {});
  // Both wait for the child's end and return its wait status. end() first sends SIGTERM, and
  // SIGCONT in case the child is stopped; then SIGKILL, when it has not ended in time.
  int wait();
  int end(std::chrono::milliseconds patience);
  // Gives the child up: it is neither killed nor waited for. For a child that even SIGKILL does not
  // end, in a call that the kernel does not leave.
  void let_go();
  int status() const { return status_; }  // its wait status when it has ended

 private:
  bool reap(int options);

  pid_t pid_ = -1;
  bool is_running_ = false;
  FileDescriptor exit_;
  int status_ = 0;
};

}  // namespace tune
