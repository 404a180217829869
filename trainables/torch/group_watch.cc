#include "trainables/torch/group_watch.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace tune {

// Asked in a thread that is left to itself: the store of a rank 0 that is stopped does not answer.
struct GroupWatch::Question {
  std::function<bool()> any_alone;
  std::atomic<bool> is_asked = false;
  std::atomic<bool> answer = false;  // the last
};

GroupWatch::GroupWatch(std::function<bool()> any_alone, Milliseconds timeout)
    : timeout_(timeout),
      period_(std::clamp(timeout / 10, Milliseconds(10), Milliseconds(1000))),
      question_(std::make_shared<Question>()),
      thread_() {
  question_->any_alone = std::move(any_alone);
  thread_ = std::thread([this] { watch(); });
}

GroupWatch::~GroupWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t GroupWatch::begin(std::function<void()> give_up, std::function<bool()> is_over) {
  const std::lock_guard lock(mutex_);
  under_way_[++last_] = {Clock::now(), std::move(give_up), std::move(is_over)};
  return last_;
}

void GroupWatch::end(std::uint64_t collective) {
  const std::lock_guard lock(mutex_);
  under_way_.erase(collective);
}

void GroupWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period_, [this] { return ending_; })) look(lock);
}

void GroupWatch::look(std::unique_lock<std::mutex>& lock) {
  std::vector<std::pair<std::uint64_t, std::function<bool()>>> asked;
  for (const auto& [number, one] : under_way_) {
    if (one.is_over) asked.emplace_back(number, one.is_over);
  }
  lock.unlock();
  std::erase_if(asked, [](const auto& one) { return !one.second(); });
  lock.lock();
  for (const auto& [number, is_over] : asked) under_way_.erase(number);

  // Most end at once: nobody is asked then.
  const auto now = Clock::now();
  const auto is_slow = [&](const auto& one) { return one.second.began + period_ <= now; };
  if (std::ranges::none_of(under_way_, is_slow)) return;
  if (is_any_alone()) patient_since_ = now;
  std::vector<std::function<void()>> given_up;
  std::erase_if(under_way_, [&](const auto& one) {
    const bool is_late = std::max(one.second.began, patient_since_) + timeout_ <= now;
    if (is_late) given_up.push_back(one.second.give_up);
    return is_late;
  });
  lock.unlock();
  for (const auto& give_up : given_up) give_up();
  lock.lock();
}

// As it was when it was last known.
bool GroupWatch::is_any_alone() {
  if (!question_->is_asked.exchange(true)) {
    std::thread([question = question_] {
      question->answer = question->any_alone();
      question->is_asked = false;
    }).detach();
  }
  return question_->answer;
}

}  // namespace tune
