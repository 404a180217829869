// ConsoleReporter: the status block on stderr. On a terminal it is redrawn in place and fits the
// screen (not with NO_COLOR or TERM=dumb); elsewhere it is printed every 30 s when it changed.
// Notices and failures stand above it. A terminal that is redrawn has colours.
//
// Its caller never waits for the reader. While the output is not read (Ctrl-S, an ssh client that
// sleeps) no further block is made, as it would be stale when it is seen. Notices wait up to the
// console's bound; of later ones only the number is told.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/results/reporter.h"
#include "tune/show/status_block.h"

namespace tune {

// The output of the block.
class Console {
 public:
  virtual ~Console() = default;
  // Never waits. False, and nothing is written, when too much unread text waits already.
  virtual bool write(std::string_view text) = 0;
  virtual bool is_idle() const = 0;  // nothing waits to be read
  virtual void wait() = 0;           // until it is idle, for a short time at most
  // The size of a terminal that can be redrawn now; nothing: the output is not one.
  virtual std::optional<BlockSize> screen() = 0;
  virtual bool has_colours() const { return false; }  // and takes them where there is a screen
};
std::unique_ptr<Console> stderr_console();

class ConsoleReporter : public ProgressReporter {
 public:
  explicit ConsoleReporter(ReporterOptions options,
                           std::unique_ptr<Console> console = stderr_console());
  ~ConsoleReporter() override;

  void status(const ExperimentStatus& status, bool final) override;
  void notice(const std::string& text) override;
  void failure(const Trial& trial, const std::string& trial_id, const std::filesystem::path& file,
               bool retried) override;

 private:
  bool is_due(ExperimentTime running_for, bool in_place) const;
  std::string back_to_block() const;
  std::vector<std::string> rendered(const ExperimentStatus& status, BlockSize size);
  std::string drawable(const std::vector<std::string>& lines) const;
  void redraw(std::vector<std::string> lines);
  void print(const std::vector<std::string>& lines);
  bool write_above(const std::string& text);
  void tell_dropped();

  ReporterOptions options_;
  std::unique_ptr<Console> console_;
  BlockMemory memory_;
  std::vector<std::string> drawn_;    // the block that stands on the terminal, without colours
  std::string best_;                  // the best trial's name; empty: none
  std::vector<std::string> printed_;  // the last one elsewhere, without what changes by itself
  std::optional<ExperimentTime> shown_;
  std::uint64_t dropped_ = 0;  // notices that were not written
};

}  // namespace tune
