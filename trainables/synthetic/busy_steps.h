// Steps of a fixed amount of work, timed as a whole: they show the cost of a worker's step, and of
// the same loop without a worker.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace tune::synthetic {

// This many multiplications, each of which waits for the one before; a few nanoseconds a round.
inline double busy_work(std::uint64_t rounds) {
  double x = 0.5;
  for (std::uint64_t i = 0; i < rounds; ++i) x = 3.9 * x * (1 - x);
  const volatile double kept = x;  // the work is done even if nobody asks for its outcome
  return kept;
}

// Times of the steps so far, in milliseconds: from the end of one step's work to that of the next,
// so that a step includes the report before it.
struct BusyTimes {
  double mean = 0;
  double median = 0;  // 0 before the last step
};

// Calls `report(value, times)` after each step; goes on while it returns true.
template <class Report>
void do_busy_steps(std::uint64_t steps, std::uint64_t rounds, const Report& report) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  times.reserve(steps);
  const auto start = Clock::now();
  auto last = start;
  BusyTimes told;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const double value = busy_work(rounds);
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(now - last).count());
    last = now;
    told.mean =
        std::chrono::duration<double, std::milli>(now - start).count() / static_cast<double>(step);
    if (step == steps) {
      const auto middle = times.begin() + static_cast<std::ptrdiff_t>(steps / 2);
      std::nth_element(times.begin(), middle, times.end());
      told.median = *middle;
    }
    if (!report(value, told)) return;
  }
}

}  // namespace tune::synthetic
