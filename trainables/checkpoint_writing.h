// CheckpointWriting: the part of a save that goes on beside the training, in a thread of its own;
// one at a time.
//
// A forked writer, to which the kernel would give the copy, fails: in the child of a process with
// threads (LibTorch's, a loader's, Gloo's) a lock may be held for ever, CUDA is out of bounds, and
// each page that the next step touches costs the training a fault.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>

namespace tune {

class CheckpointWriting {
 public:
  CheckpointWriting() = default;
  ~CheckpointWriting() { end(); }
  CheckpointWriting(const CheckpointWriting&) = delete;
  CheckpointWriting& operator=(const CheckpointWriting&) = delete;

  // The former one has ended: wait() was called. `write` is destroyed in that thread.
  void begin(std::function<void()> write);
  bool is_under_way() const { return thread_.joinable(); }  // until wait() was called
  // Returns when it is over. Throws the exception that it threw, once.
  void wait();
  // The same, but only if it is over already.
  void look();
  void end();  // waits, and forgets an exception

 private:
  std::thread thread_;
  std::atomic<bool> is_over_ = false;
  std::exception_ptr failure_;  // the thread's until it is over
};

}  // namespace tune
