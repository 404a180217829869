// FileWorker: file operations beside a poll loop. One thread does them in the order in which they
// are given, so that a file system that stalls holds up neither the loop nor its heartbeats. The
// loop takes their outcomes in the same order.
//
// More threads would not do: operations on one trial must not overtake each other, and a file
// system that stalls one usually stalls all.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/platform/process.h"

namespace tune {

class FileWorker {
 public:
  // Runs in the thread and may block. Returns the loop's part of the work, which must not throw.
  using Outcome = std::function<void()>;
  using Work = std::function<Outcome()>;
  // While this many operations wait the loop must not take on more that its workers cause: they
  // wait for it. A driver's command is obeyed all the same; it causes one or two, and the trials
  // that an agent has bound the commands.
  static constexpr std::size_t kMaxWaiting = 1024;

  // Starts the thread, so not in a process that is still to be forked.
  FileWorker();
  ~FileWorker();  // when all that was given is done; outcomes that nobody took are dropped
  FileWorker(const FileWorker&) = delete;

  // Never blocks. An exception of `work` ends the program: an expected failure is an outcome.
  void give(Work work);
  bool is_full() const { return waiting() >= kMaxWaiting; }
  std::size_t waiting() const;  // given, outcome not taken yet
  // Readable while there are outcomes.
  int descriptor() const { return signal_.get(); }
  void take_outcomes();  // calls them

 private:
  void work();

  FileDescriptor signal_;
  mutable std::mutex mutex_;
  std::condition_variable given_;
  std::deque<Work> queue_;
  std::vector<Outcome> outcomes_;
  std::size_t waiting_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tune
