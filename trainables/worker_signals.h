// Only the agent may end a worker by a signal.
#pragma once

#include <sys/types.h>

namespace tune {

// SIGTERM, SIGINT and SIGHUP end this process, a future worker, only when they come from the agent
// or from itself. systemd and batch systems send SIGTERM to every process of a job at once: the
// driver then lets trials save, which a worker that has died of it cannot do.
//
// The signals have a handler, and are neither ignored nor blocked: programs that a worker starts
// would inherit that, and could not be ended. A child that it forks and does not execute obeys
// every sender. A handler that user code installs stands in place of this one.
void obey_only(pid_t agent);
bool is_of_agent(int signal);  // one of these

// Call it in the worker itself: from here on its own children are told from it.
void is_worker_now();

}  // namespace tune
