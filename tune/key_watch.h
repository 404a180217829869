// KeyWatch: notices when the metric or a key of a stop rule never appears in the results. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tune/events.h"

namespace tune {

class KeyWatch {
 public:
  // Key paths that results are expected to have.
  explicit KeyWatch(std::vector<std::string> expected);
  // A warning to show once, or empty: some expected key is in none of a trial's results by its end, or
  // in none of the first kPatience results.
  std::string record(const Record& record);

 private:
  std::string complain(const Reported& report);

  std::vector<std::string> missing_;
  std::uint64_t results_ = 0;
  bool done_ = false;
};

}  // namespace tune
