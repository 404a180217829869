// ExperimentHead: what an experiment's folder tells without its trials: experiment.json, run.json
// and the lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "core/value.h"
#include "schedulers/trial_scheduler.h"
#include "tune/search/search_space.h"

namespace tune {

inline constexpr const char* kSpecFile = "experiment.json";

struct ExperimentHead {
  std::filesystem::path directory;
  std::string key;     // names it in addresses: never a path
  std::string folder;  // the folder's own name
  std::string name;
  std::string trainable;
  std::string metric;  // empty: none
  Mode mode = Mode::kMax;
  std::string scheduler, searcher;
  std::int64_t num_samples = 0;
  Value spec;                       // experiment.json
  std::set<std::string> log_paths;  // parameters that are drawn on a logarithmic scale
  double changed = 0;               // unix seconds: the newest of its files
  std::string problem;              // why it cannot be shown; empty: it can
};

// "running", "interrupted", "finished", "failed", "killed" (no driver holds it, and none has
// written an end), or "not begun".
std::string state_of(const std::filesystem::path& directory);

// Never throws: what is wrong stands in `problem`.
ExperimentHead read_head(const std::filesystem::path& directory);
bool is_experiment(const std::filesystem::path& directory);
// The same for a reader that cannot do without it: throws Error (kBadInput) when the folder holds
// no experiment, or one that this program cannot read, a newer one.
ExperimentHead checked_head(const std::filesystem::path& directory);

// Its search space, to be read: functions in it cannot be called. What cannot be read is left out.
SearchSpace space_of(const ExperimentHead& head);

}  // namespace tune
