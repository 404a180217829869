// tune run --detach: the run goes on in a process apart from the terminal.
#pragma once

#include <functional>

#include "tune/drive/driver.h"

namespace tune {

// Runs it in a session of its own, with its output in detached.log of the experiment. Returns when
// the trials may begin, or with its exit code when it has ended before. Before there is a thread.
int run_detached(RunRequest request, const std::function<int(RunRequest)>& run);

}  // namespace tune
