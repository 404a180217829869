// The loggers that a sweep names: `loggers: [tensorboard]`.
#pragma once

#include <filesystem>

#include "tune/export/logger_threads.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// For a start, before anything is made. Throws Error (kBadInput), with the way out, for a logger
// that could not begin however long the sweep lasts: mlflow without the address of a server. A
// server that is down is another thing: it may come back, and the export sends what it missed.
void check_loggers(const ExperimentSpec& spec);

// Starts those of the spec, and a thread for each of its callbacks, for this experiment's folder;
// `shown` is the folder as the user knows it.
void start_loggers(const ExperimentSpec& spec, const std::filesystem::path& experiment,
                   const std::filesystem::path& shown, LoggerThreads& threads);

}  // namespace tune
