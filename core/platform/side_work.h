// Work on files that a loop must not wait for: a thread does it, in the order in which it was
// given. What waits is bounded by its owner, who gives no more while has_room() is false; so the
// sources of the work are slowed instead of memory filled, and the loop itself goes on.
//
// Not for work that somebody must be told has happened: an error is seen by the next call.
#pragma once

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

  // Called by the thread whenever it has done all that waited when it looked: what many works have
  // gathered can be written in one piece then. Before the first add().
  void after_each_round(Work work) { after_round_.push_back(std::move(work)); }

  // The thread starts with the first work, so that a process can be forked before. `size` is what
  // its owner counts: bytes that the work holds, say. Throws as check() does; the work is dropped
  // then.
  void add(std::size_t size, Work work);
  bool has_room() const;  // less than max_waiting waits or is being done
  // Throws what a work has thrown, each time: nothing was done after it.
  void check() const;
  // Waits until all is done. Throws as check() does.
  void finish();
  // Waits for the work that has begun; the rest is dropped, and nothing is taken any more.
  void stop();

 private:
  struct Shared;
  void run();
  std::exception_ptr do_round(std::vector<Work>& round) const;

  std::size_t max_waiting_;
  std::vector<Work> after_round_;
  std::shared_ptr<Shared> shared_;  // with the thread; null: nothing was given yet
};

}  // namespace tune
