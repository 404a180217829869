// The first moments of a process that becomes a rank, whatever it then runs.
#pragma once

#include "core/worker_contract.h"
#include "trainables/channel.h"

namespace tune {

// The agent's first word. Throws AttemptFailure when it is another one.
StartWorker receive_start(Channel& channel);

// Sets the environment, makes the trial's folder, appends standard output and errors to the trial's
// files, and calls what at_rank_start() registered. Throws AttemptFailure, or what that throws.
void become_rank(const StartWorker& start);

// Everything printed so far is in the files.
void flush_output();

}  // namespace tune
