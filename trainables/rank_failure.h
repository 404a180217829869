// Whether this process has failed as a rank of its group.
#pragma once

namespace tune {

// The worker calls this when it has caught the exception that ends the attempt, before it destroys
// the trainable: connections to the other ranks are then cut, and not closed with a wait for ranks
// that still compute. It cannot be undone.
void say_rank_failed();
bool has_rank_failed();

}  // namespace tune
