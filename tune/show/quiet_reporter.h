// QuietReporter: no table; warnings and failures of trials still go to stderr, a line each. Nobody
// needs to read it: what is too much to wait for a reader is lost.
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
