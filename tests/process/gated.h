// Sweeps whose trials wait in a step until the test lets them go on, and what they have left.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {

inline constexpr std::size_t kGatedSteps = 40;

// Of trials that wait in their 15th step until the gate is open.
inline std::string gated_sweep(int trials, const std::string& rest = "") {
  return yaml({.trainable = "Teller",
               .config = "{x: {uniform: [0, 1]}, bytes: 20, step_ms: 2, gate: open}",
               .num_samples = trials,
               .rest = "stop: {training_iteration: 40}\ncheckpoint: {frequency: 5}\n" + rest,
               .metric = "count",
               .plugin = TUNE_TELLER_PLUGIN});
}

inline void open_gate(const Sandbox& box) {
  box.write("open", "");
}

// The pids of the processes that made each trial's results.
inline std::map<std::string, std::set<int>> processes_of_trials(const Sandbox& box) {
  std::map<std::string, std::set<int>> pids;
  for (const std::filesystem::path& trial : trial_folders(box, "results/s")) {
    const std::string file = std::filesystem::relative(trial / "result.json", box.path());
    for (const std::string& line : lines_of(box.read(file))) {
      pids[trial.filename()].insert(parse_json(line, file).get<int>("pid"));
    }
  }
  return pids;
}

inline std::size_t count_events(const Sandbox& box, const std::string& kind) {
  std::size_t found = 0;
  for (const std::string& line : lines_of(box.read("results/s/events.jsonl"))) {
    found += testing::has(line, "\"event\":\"" + kind + "\"");
  }
  return found;
}

}  // namespace tune
