// The request for a resumed experiment: the stored spec, with the few options that may change.
#pragma once

#include <filesystem>

#include "tune/drive/driver.h"

namespace tune {

// The request that resumes the experiment in this folder from its experiment.json alone. Throws
// Error (kBadInput) when there is none.
RunRequest resume_request(const std::filesystem::path& directory);

// The same for options that are given again, as a program brings its own: num_samples (larger),
// max_failures, time_budget_s and max_concurrent_trials are taken from `given`, and so is
// everything that a file cannot hold (custom schedulers and searchers, functions in the search
// space, a reporter, environment values); everything else is as stored. Prints one warning that
// names changes without effect.
RunRequest resume_request(const std::filesystem::path& directory, const ExperimentSpec& given);

// With if_exists kResume the request that resumes the experiment of this name, if its storage holds
// one; else the request for a new one.
RunRequest request_by_if_exists(ExperimentSpec given);

}  // namespace tune
