// Waits for ranks that cannot be heard yet, or not any more: while a group forms, and for what the
// store of rank 0 answers.
#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

#include "trainables/solitude.h"

namespace tune {

struct NoAnswer : std::runtime_error {
  NoAnswer() : std::runtime_error("rank 0, which keeps the group together, does not answer") {}
};

// Beyond the time that the store is to keep itself.
inline constexpr std::chrono::milliseconds kPatienceForStore{500};

// The time begins anew as long as another rank is alone, where somebody knows it.
class RanksPatience {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using Clock = std::chrono::steady_clock;

  explicit RanksPatience(Milliseconds limit)
      : limit_(limit), period_(std::clamp(limit / 10, Milliseconds(10), Milliseconds(1000))) {}

  // When to look again, at the latest.
  Clock::time_point next_look() const { return std::min(asked_ + period_, since_ + limit_); }
  bool is_over() {
    const auto now = Clock::now();
    if (now >= next_look()) {
      asked_ = now;
      if (is_another_alone().value_or(false)) since_ = now;
    }
    return now >= since_ + limit_;
  }

 private:
  Milliseconds limit_;
  Milliseconds period_;
  Clock::time_point since_ = Clock::now();
  Clock::time_point asked_ = since_;
};

template <class Work>
auto begun_in_a_thread(Work work) {
  std::packaged_task<std::invoke_result_t<Work&>()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  return result;
}

// A question to rank 0's store waits for ever when rank 0 is stopped or never begins: it is then
// left to itself, in its thread. `work` owns all that it uses.
template <class Work>
auto within(RanksPatience& patience, Work work) {
  auto result = begun_in_a_thread(std::move(work));
  while (result.wait_until(patience.next_look()) != std::future_status::ready) {
    if (patience.is_over()) throw NoAnswer();
  }
  return result.get();
}

template <class Work>
auto within(std::chrono::milliseconds limit, Work work) {
  auto result = begun_in_a_thread(std::move(work));
  if (result.wait_for(limit + kPatienceForStore) != std::future_status::ready) throw NoAnswer();
  return result.get();
}

}  // namespace tune
