// Warm start: the trials of earlier experiments, for the searcher of a new one. They are read once,
// when an experiment begins, and kept in its own folder, so that a resume knows the same although
// the earlier folders may have changed or gone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tune/search/earlier_trial.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// Fills spec.earlier from the folders of options.warm_start; does nothing without any. Trials
// outside the space, that break a rule of where, or without a value of the metric, are left out.
// Returns what to tell the user of it, one line; empty without warm_start. Throws Error
// (kBadInput), naming the folder, when one holds no experiment, when no result there has the
// metric, or when none of its trials lies in the space.
std::string read_warm_start(ExperimentSpec& spec);

// warm_start.json in the experiment's folder. Nothing is written when there is none to keep, or
// when the file is there.
void keep_earlier(const std::filesystem::path& directory, const ExperimentSpec& spec);
// Reads keep_earlier's file. Throws Error (kBadInput) when the file cannot be read, or is gone
// although options.warm_start names folders.
std::vector<EarlierTrial> kept_earlier(const std::filesystem::path& directory,
                                       const ExperimentSpec& spec);

inline constexpr const char* kWarmStartFile = "warm_start.json";
inline constexpr std::size_t kMostEarlierTrials = 100'000;

}  // namespace tune
