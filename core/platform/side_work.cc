#include "core/platform/side_work.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/platform/deaf_thread.h"

namespace tune {
namespace {

// A thread woken for each of 20,000 results a second costs the loop more than the results do. So
// after a round the thread lets the next one gather; it is woken only when it has long been idle.
// It sleeps: waiting to be hurried took three calls of the kernel a round instead of one.
constexpr std::chrono::microseconds kGathers{250};

}  // namespace

struct SideWork::Shared {
  mutable std::mutex mutex;
  std::condition_variable given;   // to the thread while it is idle: first work, or the end
  std::condition_variable rested;  // from the thread, after a round
  std::vector<Work> waiting;
  std::size_t size = 0;  // of the waiting work and of the work being done
  bool is_idle = false;
  bool is_working = false;
  std::atomic<bool> ends = false;
  std::exception_ptr error;
  std::thread thread;

  bool rests() const { return waiting.empty() && !is_working; }
};

void SideWork::stop() {
  if (!shared_ || !shared_->thread.joinable()) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ends = true;
    shared_->waiting.clear();
  }
  shared_->given.notify_all();
  shared_->thread.join();
}

void SideWork::add(std::size_t size, Work work) {
  check();
  if (!shared_) {
    shared_ = std::make_shared<Shared>();
    shared_->thread = deaf_thread([this] { run(); });
  }
  const std::lock_guard lock(shared_->mutex);
  if (shared_->ends) return;
  shared_->waiting.push_back(std::move(work));
  shared_->size += size;
  if (std::exchange(shared_->is_idle, false)) shared_->given.notify_all();
}

bool SideWork::has_room() const {
  if (!shared_) return true;
  const std::lock_guard lock(shared_->mutex);
  return shared_->size < max_waiting_;
}

void SideWork::check() const {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->error) std::rethrow_exception(shared_->error);
}

void SideWork::finish() {
  if (!shared_) return;
  {
    std::unique_lock lock(shared_->mutex);
    shared_->rested.wait(lock, [this] { return shared_->rests(); });
  }
  check();
}

bool SideWork::rests_within(std::chrono::milliseconds limit) const {
  if (!shared_) return true;
  std::unique_lock lock(shared_->mutex);
  return shared_->rested.wait_for(lock, limit, [this] { return shared_->rests(); });
}

void SideWork::run() {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  while (true) {
    if (shared.waiting.empty()) {
      shared.is_idle = true;
      shared.given.wait(lock, [&] { return shared.ends || !shared.waiting.empty(); });
      shared.is_idle = false;
    }
    if (shared.ends) return;
    std::vector<Work> round = std::exchange(shared.waiting, {});
    const std::size_t size = shared.size;
    shared.is_working = true;
    const bool is_done_for = shared.error != nullptr;
    lock.unlock();
    std::exception_ptr error;
    if (!is_done_for) error = do_round(round);
    lock.lock();
    if (error) shared.error = error;  // before waiting work is seen to be dropped
    lock.unlock();
    round.clear();
    lock.lock();
    shared.size -= size;
    shared.is_working = false;
    shared.rested.notify_all();
    lock.unlock();
    std::this_thread::sleep_for(kGathers);
    lock.lock();
  }
}

std::exception_ptr SideWork::do_round(std::vector<Work>& round) const try {
  for (Work& work : round) {
    if (shared_->ends) return nullptr;
    before_each_();
    work();
    work = nullptr;  // frees its memory at once
  }
  if (!after_round_.empty()) before_each_();
  for (const Work& work : after_round_) work();
  return nullptr;
} catch (...) {
  return std::current_exception();
}

}  // namespace tune
