// Where time comes from. Pure code is told `now` instead; only edges hold a Clock.
#pragma once

#include <chrono>

namespace tune {

// Experiment time: counted since the experiment began, only while a driver lives, never backwards.
using ExperimentTime = std::chrono::nanoseconds;
// Wall time since the Unix epoch; it fills `timestamp` and `date` and decides nothing.
using WallTime = std::chrono::nanoseconds;

using Duration = std::chrono::nanoseconds;
inline double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
inline Duration from_seconds(double amount) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(amount));
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::nanoseconds monotonic() const = 0;
  virtual WallTime wall() const = 0;
};

}  // namespace tune
