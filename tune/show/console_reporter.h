// ConsoleReporter: the status block on stderr. On a terminal it is redrawn in place and fits the
// screen (not with NO_COLOR or TERM=dumb); elsewhere it is printed every 30 s when it changed.
// Notices and failures stand above it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/results/reporter.h"
#include "tune/show/status_block.h"

namespace tune {

// Where the block goes.
class Console {
 public:
  virtual ~Console() = default;
  virtual void write(std::string_view text) = 0;  // what cannot be written is lost
  // The size of a terminal that can be redrawn now; nothing: it is none.
  virtual std::optional<BlockSize> screen() = 0;
};
std::unique_ptr<Console> stderr_console();

class ConsoleReporter : public ProgressReporter {
 public:
  explicit ConsoleReporter(ReporterOptions options,
                           std::unique_ptr<Console> console = stderr_console());

  void status(const ExperimentStatus& status, bool final) override;
  void notice(const std::string& text) override;
  void failure(const Trial& trial, const std::string& trial_id, const std::filesystem::path& file,
               bool retried) override;

 private:
  bool is_due(ExperimentTime running_for, bool in_place) const;
  std::string back_to_block() const;
  void redraw(std::vector<std::string> lines);
  void print(const std::vector<std::string>& lines);

  ReporterOptions options_;
  std::unique_ptr<Console> console_;
  BlockMemory memory_;
  std::vector<std::string> drawn_;    // the block that stands on the terminal
  std::vector<std::string> printed_;  // the last one elsewhere, without what changes by itself
  std::optional<ExperimentTime> shown_;
};

}  // namespace tune
