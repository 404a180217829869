// The machine's own clocks.
#pragma once

#include "core/clock.h"

namespace tune {

class SystemClock : public Clock {
 public:
  std::chrono::nanoseconds monotonic() const override;
  WallTime wall() const override;
};

}  // namespace tune
