// StatusStream: what a sweep shows, as lines of JSON for a program that draws it itself (a
// notebook):
//   {"lines": [text above and below the table], "table": [[heads], [cells], ...], "final": false}
//   {"notice": text}
// It never waits for a reader: blocks that it has not taken are left out.
#pragma once

#include "core/platform/process.h"
#include "core/platform/side_output.h"
#include "tune/results/reporter.h"
#include "tune/show/status_block.h"

namespace tune {

class StatusStream : public ProgressReporter {
 public:
  StatusStream(FileDescriptor output, ReporterOptions options)
      : descriptor_(std::move(output)), output_(descriptor_.get()), options_(std::move(options)) {}

  void status(const ExperimentStatus& status, bool final) override;
  void notice(const std::string& text) override;
  void failure(const Trial& trial, const std::string& trial_id, const std::filesystem::path& file,
               bool retried) override;

 private:
  FileDescriptor descriptor_;
  SideOutput output_;
  ReporterOptions options_;
  BlockMemory memory_;
  BlockMemory rows_memory_;
  ExperimentTime shown_{-1};
};

}  // namespace tune
