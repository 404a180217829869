#include "tune/show/quiet_reporter.h"

#include <fmt/format.h>

namespace tune {

void QuietReporter::notice(const std::string& text) {
  output_.write(text + "\n");
}

void QuietReporter::failure(const Trial& trial, const std::string& trial_id,
                            const std::filesystem::path& file, bool retried) {
  notice(fmt::format("trial {} failed: {}{}, see {}", trial_id, (*trial.failure)->cause,
                     retried ? " (it is tried again)" : "", file.string()));
}

}  // namespace tune
