// The status block as lines of text: what is rendered, not where it goes. Pure but for the local time
// zone. Costs a look at each trial's status, nothing more that grows with their number.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tune/reporter.h"

namespace tune {

// What lines have to fit in; 0: no limit.
struct BlockSize {
  std::size_t width = 0;
  std::size_t height = 0;
};

// At most `max_rows` trials: RUNNING, PAUSED, PENDING, TERMINATED, ERROR, each that there is
// represented. Of those that are over the newest, of the others the oldest.
std::vector<const Trial*> choose_rows(const ExperimentStatus& status, std::size_t max_rows);

// Metrics in the order first reported.
class MetricNames {
 public:
  void learn(const std::vector<const Trial*>& trials);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

// `metrics` as MetricNames has them. Lines have no line's end.
std::vector<std::string> render_status(const ExperimentStatus& status,
                                       const ReporterOptions& options,
                                       const std::vector<std::string>& metrics, BlockSize size);
// What is said below the last block: the best configuration and where the CSV is.
std::vector<std::string> render_end(const ExperimentStatus& status);

// On a terminal, how many columns a text takes, and as much of it as fits in so many.
std::size_t text_width(std::string_view text);
std::string fitted(std::string_view text, std::size_t width);
// Without control characters but tabs and line ends: what others wrote must not steer the terminal.
std::string printable(std::string_view text);
std::string one_line(std::string_view text);  // the same, with blanks for tabs and line ends

}  // namespace tune
