// Runs one experiment to its end: the process that decides. One at a time in a process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent_program.h"
#include "tune/results/reporter.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// The origin of worker processes. A plugin's zygote is the program `tune-worker`; a program's own
// trainable runs in a child of the program as it stands, or in the program executed again.
struct ZygoteSource {
  // The agent, which has the first zygote as its child: then in_process is not used.
  std::optional<WaitingAgent> waiting_agent = {};
  std::function<void(int control_socket)> in_process;  // never returns; empty: use the command
  // Executed as the zygote (also when the one in process was killed); "{control}" in it is replaced
  // by the number of the control socket. Empty: tune-worker with spec.plugin.
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
};

struct RunRequest {
  ExperimentSpec spec;
  // Not empty: this experiment's folder exists and its journal goes on; spec is what it holds.
  std::filesystem::path resume = {};
  bool retry_errored = false;  // with resume: trials in ERROR are tried again
  // This node's resources, if they were found before.
  std::optional<NodeResources> node = {};
  ZygoteSource zygote = {};
  // A file with the keys by which machines join; made when it is not there. Empty: keys of its own.
  std::filesystem::path keys = {};
  std::vector<std::string> notices = {};            // for the user, before all others
  std::shared_ptr<ProgressReporter> reporter = {};  // never null when it runs
};

struct RunOutcome {
  std::filesystem::path directory;  // <storage>/<name>
  std::uint64_t errored = 0;        // trials in ERROR
  int signal = 0;                   // not 0: this signal ended it early; it can be resumed
};

// Throws Error (kBadInput) before anything is started or written when the folder may not be used or
// the node can never give the resources. Mistakes in the plugin are known once the node has loaded
// it: they are refused then (kBadInput, with file and line when spec.places has them), before a
// trial or a table, and no trace of a new experiment stays behind. Throws Error (kStore, kIo,
// kProcess) when the experiment cannot go on; its state is kept and the message has the command
// that resumes it.
RunOutcome run_experiment(RunRequest request);

}  // namespace tune
