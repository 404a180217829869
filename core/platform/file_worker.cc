#include "core/platform/file_worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "core/platform/deaf_thread.h"

namespace tune {

FileWorker::FileWorker() : signal_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = deaf_thread([this] { work(); });
}

FileWorker::~FileWorker() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  given_.notify_one();
  thread_.join();
}

void FileWorker::give(Work work) {
  {
    const std::lock_guard guard(mutex_);
    queue_.push_back(std::move(work));
    ++waiting_;
  }
  given_.notify_one();
}

std::size_t FileWorker::waiting() const {
  const std::lock_guard guard(mutex_);
  return waiting_;
}

void FileWorker::take_outcomes() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(signal_.get(), &count, sizeof count);
  std::vector<Outcome> outcomes;
  {
    const std::lock_guard guard(mutex_);
    outcomes.swap(outcomes_);
    waiting_ -= outcomes.size();
  }
  for (const Outcome& outcome : outcomes) outcome();
}

void FileWorker::work() {
  std::unique_lock guard(mutex_);
  while (true) {
    given_.wait(guard, [this] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    guard.unlock();
    Outcome outcome = work();
    guard.lock();
    outcomes_.push_back(std::move(outcome));
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(signal_.get(), &one, sizeof one);
  }
}

}  // namespace tune
