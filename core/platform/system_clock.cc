#include "core/platform/system_clock.h"

namespace tune {

std::chrono::nanoseconds SystemClock::monotonic() const {
  return std::chrono::steady_clock::now().time_since_epoch();
}

WallTime SystemClock::wall() const {
  return std::chrono::system_clock::now().time_since_epoch();
}

}  // namespace tune
