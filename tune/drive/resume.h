// The request for a resumed experiment: the stored spec, with the few options that may change.
#pragma once

#include <filesystem>

#include "tune/drive/driver.h"

namespace tune {

// The request that resumes the experiment in this folder from its experiment.json alone. Throws
// Error (kBadInput) when there is none.
RunRequest resume_request(const std::filesystem::path& directory);

// The same for a program that brings its own options: num_samples (larger), max_failures,
// time_budget_s and max_concurrent_trials are taken from `given`, and so is everything that a file
// cannot hold (custom schedulers and searchers, functions in the search space, a reporter,
// environment values); everything else is as stored. Prints one warning that names changes without
// effect.
RunRequest resume_request(const std::filesystem::path& directory, const ExperimentSpec& given);

}  // namespace tune
