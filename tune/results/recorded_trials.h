// The trials of an experiment as a model sees them, read from its folder: where in the space each
// one was, how it ended, and the values on its way. For a finished, running or killed experiment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/value.h"
#include "tune/results/analysis.h"
#include "tune/search/encoding.h"
#include "tune/search/history.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

struct RecordedTrial {
  std::string id;
  Config config;  // that its values are of: the first one, when a scheduler replaced it
  Standing standing = Standing::kRunning;
  // At the rungs of a history (1, 3, 9 ... steps), and the newest; in the metric's own direction.
  // Values that are not finite are NaN.
  std::vector<ValueAt> values;
};

// The first time that a scheduler let a trial go on with another configuration.
struct FirstReplaced {
  std::uint64_t iteration = 0;  // up to which its values are of
  Config before;
};
// By the trial's id. Throws as for_each_event.
std::map<std::string, FirstReplaced> first_replaced(const std::filesystem::path& experiment);

// How it ended. `was_cut_short`: its newest attempt ended otherwise than by having completed.
Standing standing_of(TrialStatus status, bool was_cut_short, bool was_replaced);
// Throws as TrialSummary.
RecordedTrial recorded_trial(const TrialSummary& trial, const std::string& metric,
                             Standing standing, const FirstReplaced* replaced);

// By number, those without a value too. Throws as Analysis and for_each_event.
std::vector<RecordedTrial> recorded_trials(const Analysis& analysis, const std::string& metric);

// The experiment's space as coordinates; a grid_search counts as a choice, and `where` does not.
Encoding encoding_of(const SearchSpace& space);

}  // namespace tune
