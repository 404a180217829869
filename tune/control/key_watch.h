// KeyWatch: notices when the metric or a key of a stop rule is never a number of the results, and
// when a trial ends without one of several metrics. Pure.
#pragma once

#include <string>
#include <vector>

#include "tune/control/events.h"

namespace tune {

// "'acc' is in no result so far (did you mean 'accuracy'?); results have: accuracy, loss", with the
// keys of this report; or, for a key that is there, "'acc' is the text 'high', expected a number".
std::string missing_keys(const std::vector<std::string>& paths, const Reported& report);

class KeyWatch {
 public:
  // Key paths at which results are expected to have numbers; and the metrics, where there are
  // several: the last result of each trial is expected to have all of them.
  explicit KeyWatch(std::vector<std::string> expected, std::vector<std::string> metrics = {});
  // A warning to show once, or empty: some expected key is in none of a trial's results by its end,
  // or in none of the first kPatience results. After that, once: a trial's last result lacks one of
  // the metrics.
  std::string record(const Record& record);

 private:
  std::string look_at(const Trial& trial, const Reported& report, bool is_last);
  std::string last_of(const Trial& trial, const Reported& report);

  std::vector<std::string> missing_;  // empty: nothing more is to be said of them
  std::vector<std::string> metrics_;  // empty: nothing more is to be said of them
  std::uint64_t results_ = 0;
};

}  // namespace tune
