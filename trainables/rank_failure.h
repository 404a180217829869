// Whether this process has failed as a rank of its group.
#pragma once

namespace tune {

// The worker says so when it has caught what ends the attempt, before it ends what the trainable
// holds: connections to the other ranks are then cut, and not closed with a wait for ranks that
// still compute. For good.
void say_rank_failed();
bool has_rank_failed();

}  // namespace tune
