// The records of TensorBoard's HParams plugin: its table of an experiment's trials, with
// parameters, metrics and outcomes. Each of these is the content of a plugin_event (event_file.h).
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/trial.h"
#include "core/value.h"
#include "tune/search/search_space.h"

namespace tune {

inline constexpr std::string_view kHparamsPlugin = "hparams";

// Tags of the events.
inline constexpr std::string_view kHparamsExperiment = "_hparams_/experiment";
inline constexpr std::string_view kHparamsStart = "_hparams_/session_start_info";
inline constexpr std::string_view kHparamsEnd = "_hparams_/session_end_info";

// The columns of the table: every value that a configuration of the space may have, and these
// metrics.
std::string hparams_experiment(const SearchSpace& space, const std::vector<std::string>& metrics);

// A row. Numbers are told as numbers; what is null or not finite is left out, as TensorBoard cannot
// show it; lists are told as their JSON.
std::string hparams_start(const Config& config, std::string_view trial_id, double time);
std::string hparams_end(TrialStatus status);

}  // namespace tune
