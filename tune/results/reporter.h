// ProgressReporter: the display that a person sees while an experiment runs. Derive from it for a
// custom one; the default is the console reporter. Called from the driver's loop: be quick.
#pragma once

#include <array>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/trial.h"
#include "tune/spec/run_options.h"

namespace tune {

// The experiment as it stands; valid during the call only.
struct ExperimentStatus {
  const RunOptions& options;       // metric and mode also when only the scheduler has them
  const std::string& trainable;    // its name
  std::string experiment_id = {};  // trial_id(experiment_id, number) is a trial's name
  const std::deque<Trial>& trials;                 // by number; those created so far
  std::optional<std::uint64_t> total_trials = {};       // nothing: no end
  std::array<std::uint64_t, 5> counts{};           // of created trials, by TrialStatus
  std::optional<TrialNumber> best = {};                 // by metric and mode, over the last results
  ExperimentTime running_for{};
  WallTime wall{};
  std::int64_t cpu_units_used = 0, cpu_units_total = 0;
  std::int64_t gpu_units_used = 0, gpu_units_total = 0;
  std::int64_t memory_used_bytes = 0, memory_total_bytes = 0;  // of this node
  std::vector<std::string> scheduler_lines = {};
  std::filesystem::path directory = {};                 // as the user wrote storage, not resolved
  std::vector<TrialNumber> pareto = {};  // with several objectives: those that none dominates
  bool live = true;                                // false: read from a journal, nothing runs
  // Nodes and GPUs ("GPU 1 of node-3") that get no trials for a while, as trials failed there.
  std::vector<std::string> set_aside = {};
  std::map<AgentNumber, std::string> nodes = {};  // the hostnames of those that are there
  // Of those by their addresses; empty: nodes of several names have it.
  std::map<std::string, std::string> hosts = {};
  std::string joined = {};  // how many have joined, and which leaves when; empty: none has
  std::string waits = {};  // why trials wait for the pool's engine; empty: they do not
  std::vector<TrialNumber> held = {};  // trials that users have paused
  bool waits_for_user = false;         // nothing runs, or could, but for these
};

class ProgressReporter {
 public:
  virtual ~ProgressReporter() = default;
  // Called once at the start, then after changes (not more often than every ~100 ms), and once with
  // final = true at the end.
  virtual void status(const ExperimentStatus& status, bool final) = 0;
  // A line for the user: a warning, a stopped trial's reason.
  virtual void notice(const std::string& text) = 0;
  // An attempt failed; trial.failure says how. `file` holds the whole story (error.txt).
  virtual void failure(const Trial& trial, const std::string& trial_id,
                       const std::filesystem::path& file, bool retried) = 0;
};

}  // namespace tune
