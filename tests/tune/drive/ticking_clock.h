// A clock that goes on by a tick whenever it is looked at, so that waiting has an end that no real
// time decides.
#pragma once

#include <chrono>

#include "core/clock.h"

namespace tune::testing {

class TickingClock : public Clock {
 public:
  explicit TickingClock(std::chrono::nanoseconds tick) : tick_(tick) {}
  std::chrono::nanoseconds monotonic() const override { return now_ += tick_; }
  WallTime wall() const override { return {}; }
  void pass(std::chrono::nanoseconds time) const { now_ += time; }
  std::chrono::nanoseconds now() const { return now_; }

 private:
  std::chrono::nanoseconds tick_;
  mutable std::chrono::nanoseconds now_{};
};

}  // namespace tune::testing
