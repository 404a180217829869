// Runs one experiment to its end: the process that decides. One at a time in a process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "tune/experiment_spec.h"

namespace tune {

struct RunRequest {
  ExperimentSpec spec;
  bool resume = false;         // spec.name's folder exists and its journal goes on
  bool retry_errored = false;  // with resume: trials in ERROR are tried again
  // The zygote of a program's own trainable, run in a child of this process; must not return. Empty:
  // `tune-worker` loads spec.plugin.
  std::function<void(int control_socket)> zygote;
};

struct RunOutcome {
  std::filesystem::path directory;  // <storage>/<name>
  std::uint64_t errored = 0;        // trials in ERROR
  int signal = 0;                   // not 0: this signal ended it early; it can be resumed
};

// Refuses with Error (kBadInput) before anything is started or written when the folder may not be
// used, resources can never be had or the trainable cannot be loaded. Throws Error (kStore, kIo,
// kProcess) when the experiment cannot go on; its state is kept and the message has the command that
// resumes it.
RunOutcome run_experiment(RunRequest request);

// The request that resumes the experiment in this folder, from its experiment.json. Throws Error
// (kBadInput) when there is none.
RunRequest resume_request(const std::filesystem::path& directory);

}  // namespace tune
