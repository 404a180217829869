// The reporter that the options ask for.
#pragma once

#include <memory>

#include "tune/results/reporter.h"
#include "tune/spec/run_options.h"

namespace tune {

// The user's reporter, else a quiet one when quiet, else the console reporter. Never null.
std::shared_ptr<ProgressReporter> make_reporter(const RunOptions& options);

}  // namespace tune
