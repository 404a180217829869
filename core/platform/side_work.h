// Work on files that a loop must not wait for: a thread does it in the order in which it was given,
// in rounds of what has gathered for 0.25 ms, so that a busy loop need not wake it for each.
// The owner bounds the queue: it adds nothing while has_room() is false. So the sources of the work
// are slowed instead of memory filled, and the loop itself goes on.
//
// Not for work whose completion must be reported: an error is seen by the next call only.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tune {

class SideWork {
 public:
  using Work = std::function<void()>;

  explicit SideWork(std::size_t max_waiting) : max_waiting_(max_waiting) {}
  ~SideWork() { stop(); }
  SideWork(const SideWork&) = delete;

  // Called by the thread before each work, which is not done when this throws; that is then an
  // exception of the work. Before the first add().
  void before_each(Work check) { before_each_ = std::move(check); }
  // Called by the thread whenever it has done all work that it found waiting: results gathered from
  // several works can be written in one piece then. Before the first add().
  void after_each_round(Work work) { after_round_.push_back(std::move(work)); }

  // The thread starts with the first work, so that a process can be forked before. `size` is in the
  // owner's own unit: bytes that the work holds, say. Throws as check() does; the work is dropped
  // then.
  void add(std::size_t size, Work work);
  bool has_room() const;  // whether less than max_waiting waits or is being done
  // Throws the exception of a work, each time it is called: no later work was done.
  void check() const;
  // Waits until all is done. Throws as check() does.
  void finish();
  // Waits so long at most; whether all is done, or nothing more will be. Throws nothing.
  bool rests_within(std::chrono::milliseconds limit) const;
  // Waits for the work that has begun; the rest is dropped, and nothing is taken any more.
  void stop();

 private:
  struct Shared;
  void run();
  std::exception_ptr do_round(std::vector<Work>& round) const;

  std::size_t max_waiting_;
  Work before_each_ = [] {};
  std::vector<Work> after_round_;
  std::shared_ptr<Shared> shared_;  // with the thread; null: nothing was given yet
};

}  // namespace tune
