// An experiment as a study in the journal file of Optuna (JournalFileBackend, version 5): for
// optuna-dashboard, and for programs that load it.
//
//   TERMINATED  COMPLETE; PRUNED when it was stopped early; FAIL when its last value is NaN or it
//               has none, which no complete trial has in Optuna
//   ERROR       FAIL
//   PENDING     WAITING
//   others      RUNNING: Optuna has no paused trials
//
// A trial's value is the last it reported, the values of its iterations are intermediate ones. Of
// several objectives each trial has their last values, and no intermediate ones, as Optuna has none
// there; constraints are left out. A trial of several attempts is one trial. Numbers are those of
// tune.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tune {

struct OptunaExported {
  std::uint64_t trials = 0;
  std::vector<std::string> problems;  // of damaged trials, the first few; they have no values
};

// Writes the file whole or not at all. Throws Error (kBadInput) when the folder is not an
// experiment's, or of a newer tune, or its experiment has no metric; and when a file stands there
// that this did not write. Error (kIo) when it cannot be written.
OptunaExported export_to_optuna(const std::filesystem::path& experiment,
                                const std::filesystem::path& file);

}  // namespace tune
