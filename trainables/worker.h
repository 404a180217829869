// Runs one rank of one attempt: a worker process's whole life after the fork.
#pragma once

#include "trainables/registry.h"

namespace tune {

// Reads StartWorker from `socket` (a stream to the agent), sets the environment, sends the standard
// streams to the trial's files, runs the trainable until its attempt is over and reports the end.
// Returns the exit code; the caller ends the process with _exit. Never throws.
int run_worker(const TrainableEntry& entry, int socket);

}  // namespace tune
