#include "core/agent/worker_rest.h"

#include <doctest/doctest.h>

using namespace tune;
using namespace std::chrono_literals;

namespace {

Reported report(Duration step, std::size_t bytes = 100) {
  Reported report;
  report.iteration = 10;
  report.time_this_iter = step;
  report.result.bytes.assign(bytes, 'x');
  return report;
}

}  // namespace

TEST_CASE("a worker rests when several of its steps fit, and their reports into its socket") {
  const Milestone none;
  CHECK(may_rest(report(1ms), none));
  CHECK(may_rest(report(5ms), none));
  CHECK_FALSE(may_rest(report(6ms), none));  // it would be read once a step all the same
  // 50 reports of 1,124 bytes are 56 KiB; 100 are 112 KiB, more than the 64 KiB allowed.
  CHECK(may_rest(report(100us), none));
  CHECK_FALSE(may_rest(report(50us), none));
  CHECK_FALSE(may_rest(report(1ms, 20'000), none));
  CHECK_FALSE(may_rest(report(0ms), none));
}

TEST_CASE("a worker whose report waits, ends it or comes before one that waits does not rest") {
  const Milestone none;
  Reported waiting = report(1ms);
  waiting.waiting = true;
  CHECK_FALSE(may_rest(waiting, none));
  Reported final = report(1ms);
  final.final = true;
  CHECK_FALSE(may_rest(final, none));
  // Iteration 10, five steps to come: 15 at least is told in time, 16 might be begun.
  CHECK_FALSE(may_rest(report(1ms), {"training_iteration", 15}));
  CHECK_FALSE(may_rest(report(1ms), {"training_iteration", 16}));
  CHECK(may_rest(report(1ms), {"training_iteration", 17}));
  CHECK_FALSE(may_rest(report(1ms), {"time_total_s", 1000}));  // who knows when that is
}
