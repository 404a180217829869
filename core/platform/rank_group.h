// The ranks of one group on this node: processes that begin together and end together, whichever of
// them fails. Their output is passed on line by line, with "[rank 1] ..." before each line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>

#include "core/platform/process.h"

namespace tune {

struct RankGroupOptions {
  int ranks = 1;       // on this node
  int first_rank = 0;  // its number in the whole group
  // Starts local rank `rank` with these descriptors as its stdout and stderr, in a session of its
  // own; the kernel is to kill it when the caller ends. An exception ends the group before it
  // began.
  std::function<pid_t(int rank, int output, int errors)> start;
  int good_code = 0;  // of a rank that ends as it should; any other end is a failure
  int alive = -1;     // when this becomes readable all are killed; -1: nobody watches
  // The time from the first sign of the group's end until the ranks that still run are killed.
  std::chrono::milliseconds grace_after_failure{3000};
  std::chrono::milliseconds grace_after_signal{30000};
};

struct RankGroupEnd {
  struct Failure {
    int rank = 0;  // in the whole group
    pid_t pid = 0;
    int wait_status = 0;
  };
  // The first failure. But a rank that is killed by a signal goes before one that failed just
  // before it: that one may have failed because of the other's end.
  std::optional<Failure> failure;
  int signal = 0;        // the first that this process got, passed on to all ranks
  int output_error = 0;  // errno of a stdout or stderr that takes no more
};

// Starts the ranks and returns when all are reaped and their output is written. Call it after
// adopt_descendants(): then no process that they started lives on. SIGINT, SIGTERM, SIGHUP and
// SIGQUIT are passed on; the second one kills. Exceptions of `start` are passed on.
RankGroupEnd run_rank_group(const RankGroupOptions& options);

}  // namespace tune
