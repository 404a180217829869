// The status block as lines of text: its content, not its output. Pure but for the local time zone.
// At worst it looks at the status of each trial; nothing else grows with their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tune/results/reporter.h"

namespace tune {

// The space that lines have to fit in; 0: no limit.
struct BlockSize {
  std::size_t width = 0;
  std::size_t height = 0;
};

// State that one block leaves for the next.
struct BlockMemory {
  std::vector<std::string> metrics;  // in the order first reported
  std::size_t over = 0;              // so many trials from the first on are over
  std::uint64_t errors = 0;          // of them and others: fewer when some are tried again
};

// At most `max_rows` trials: RUNNING, PAUSED, PENDING, TERMINATED, ERROR, with at least one of each
// status that occurs. Of running trials those whose last metric is best, best first; of finished
// ones the newest, of the others the oldest.
std::vector<const Trial*> choose_rows(const ExperimentStatus& status, std::size_t max_rows,
                                      BlockMemory& memory);

// Lines have no line's end. Metrics of trials that are shown are remembered.
std::vector<std::string> render_status(const ExperimentStatus& status,
                                       const ReporterOptions& options, BlockMemory& memory,
                                       BlockSize size);
// The lines below the last block: the best configuration and the place of the CSV.
std::vector<std::string> render_end(const ExperimentStatus& status);

// "[####>>......]": trials that are over, that run (one cell at least), and that are to come.
std::string progress_bar(std::uint64_t over, std::uint64_t running, std::uint64_t total);

// On a terminal, how many columns a text takes, and as much of it as fits in so many.
std::size_t text_width(std::string_view text);
std::string fitted(std::string_view text, std::size_t width);
// Drops control characters but tabs and line ends: text of others must not steer the terminal.
std::string printable(std::string_view text);
std::string one_line(std::string_view text);  // the same, with blanks for tabs and line ends

}  // namespace tune
