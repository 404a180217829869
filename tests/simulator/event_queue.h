// Virtual time: the next event, in the order of time and, at the same moment, of planning.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tune::simulator {

using Time = std::chrono::nanoseconds;

// The owner of a Life dies with it: events planned for the owner do not happen any more.
using Life = std::shared_ptr<char>;
inline Life new_life() {
  return std::make_shared<char>();
}

class EventQueue {
 public:
  Time now() const { return now_; }

  void after(Time delay, const Life& life, std::function<void()> happen) {
    planned_.push_back({now_ + delay, ++last_number_, life, std::move(happen)});
    std::push_heap(planned_.begin(), planned_.end());
  }

  // Runs the next event; false: there is none.
  bool run_next() {
    while (!planned_.empty()) {
      std::pop_heap(planned_.begin(), planned_.end());
      Planned next = std::move(planned_.back());
      planned_.pop_back();
      if (next.life.expired()) continue;
      now_ = next.at;
      next.happen();
      return true;
    }
    return false;
  }

 private:
  struct Planned {
    Time at;
    std::uint64_t number;
    std::weak_ptr<char> life;
    std::function<void()> happen;
    // The top of the heap is its greatest element: the first event.
    friend bool operator<(const Planned& a, const Planned& b) {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };
  std::vector<Planned> planned_;
  Time now_{};
  std::uint64_t last_number_ = 0;
};

}  // namespace tune::simulator
