#include "tune/show/quiet_reporter.h"

#include <cstdio>

#include <fmt/format.h>

namespace tune {

void QuietReporter::notice(const std::string& text) { fmt::print(stderr, "{}\n", text); }

void QuietReporter::failure(const Trial& trial, const std::string& trial_id,
                            const std::filesystem::path& file, bool retried) {
  fmt::print(stderr, "trial {} failed: {}{}, see {}\n", trial_id, trial.failure->cause,
             retried ? " (it is tried again)" : "", file.string());
}

}  // namespace tune
