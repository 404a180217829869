// When the agent may leave a worker unread for a moment. A message that wakes the agent costs its
// worker some microseconds: too much of a step that takes a millisecond. Pure.
#pragma once

#include <chrono>

#include "core/contract_values.h"

namespace tune {

inline constexpr std::chrono::milliseconds kWorkerRest{5};

// Whether a worker that has sent this report, alone and free up to this milestone, may be left
// unread for kWorkerRest: it makes several steps in that time, its socket can hold their reports,
// and none of them will wait for a verdict. This is a guess from the step before; a wrong guess
// delays a message and loses none. The end of the process is noticed at once in any case.
bool may_rest(const Reported& report, const Milestone& until);

}  // namespace tune
