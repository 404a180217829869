// A trial as the importance of parameters needs to know it, and the finding itself, for those who
// have read the trials. See tune/results/importance.h for what is found.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tune/results/importance.h"
#include "tune/results/recorded_trials.h"
#include "tune/search/encoding.h"

namespace tune {

struct RankedTrial {
  UnitPoint point;          // where in the space it was
  bool is_outside = false;  // it was not in it
  Standing standing = Standing::kRunning;
  std::vector<ValueAt> values;  // as RecordedTrial's
};
RankedTrial ranked_trial(const RecordedTrial& trial, const Encoding& encoding);

struct ImportanceOf {
  std::filesystem::path directory;  // in messages
  std::string metric;
  Mode mode = Mode::kMax;
};
// By number. Throws Error (kBadInput) when too few have a value, or all have the same.
Importance importance_of(const std::vector<const RankedTrial*>& trials, const Encoding& encoding,
                         const ImportanceOf& asked);
[[noreturn]] void refuse_importance(const ImportanceOf& asked, const std::string& why);

}  // namespace tune
