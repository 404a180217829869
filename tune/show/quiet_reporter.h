// QuietReporter: no table; warnings and failures of trials still go to stderr, a line each. It
// never waits for a reader: lines beyond the bound are lost.
#pragma once

#include <unistd.h>

#include "core/platform/side_output.h"
#include "tune/results/reporter.h"

namespace tune {

class QuietReporter : public ProgressReporter {
 public:
  void status(const ExperimentStatus&, bool) override {}
  void notice(const std::string& text) override;
  void failure(const Trial& trial, const std::string& trial_id, const std::filesystem::path& file,
               bool retried) override;

 private:
  SideOutput output_{STDERR_FILENO};
};

}  // namespace tune
