#include "core/agent/joining.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "core/agent/python_command.h"
#include "core/agent/worker_command.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/fingerprint.h"
#include "core/platform/node.h"
#include "core/platform/process.h"
#include "core/rank_start.h"

namespace tune {

namespace {

// The plugin that this machine loads: at its own path where it is the same there, else its copy.
std::string plugin_on_this_machine(const std::string& experiment, const JoinedSetup& setup,
                                   const std::string& hostname, Participation& part) {
  if (setup.plugin_copy.empty()) return setup.plugin;
  const std::string found = fingerprint(setup.plugin);
  if (found == setup.plugin_fingerprint) return setup.plugin;
  if (!found.empty()) {
    part.notes.push_back(
        fmt::format("{}: its {} is another file than the driver's, and a copy of "
                    "that is used",
                    hostname, setup.plugin));
  }
  part.fetches_plugin = !part.sees_folder;
  if (part.fetches_plugin) return setup.plugin;
  const auto name = std::filesystem::path(setup.plugin).filename();
  const auto copy = std::filesystem::path(experiment) / setup.plugin_copy / name;
  if (fingerprint(copy) != setup.plugin_fingerprint) {
    part.unfit = fmt::format("it has no plugin {}, nor is the copy {} there: put the plugin there",
                             setup.plugin, copy.string());
  }
  return copy;
}

// The zygote's argv, with what this machine has of its own.
std::vector<std::string> command_on_this_machine(const JoinedSetup& setup,
                                                 const std::string& hostname, Participation& part) {
  std::vector<std::string> command = setup.worker_command;
  if (command.empty()) {
    part.unfit = "a notebook or prompt began the sweep, which no other machine can execute";
    return command;
  }
  const std::string program = command.front();
  if (setup.zygote_program == ZygoteProgram::kTuneWorker) command.front() = worker_program();
  if (setup.zygote_program == ZygoteProgram::kPython) {
    command = python_command_here(std::move(command));
    if (command.front() == program) return command;
    part.notes.push_back(
        fmt::format("{} has no {}: its trials run under {}", hostname, program, command.front()));
  }
  if (::access(command.front().c_str(), X_OK) != 0) {
    part.unfit = fmt::format("it has no program {}: put it there", program);
  }
  return command;
}

}  // namespace

AgentFacts facts_of(const AgentOptions& options, AgentTime now) {
  AgentFacts facts;
  facts.hello.hostname = options.hostname;
  facts.hello.ip = options.ip;
  facts.hello.pid = static_cast<std::uint32_t>(::getpid());
  facts.hello.cpu_units = options.resources.cpu_units;
  facts.hello.memory_bytes = options.resources.memory_bytes;
  for (const Gpu& gpu : options.resources.gpus) {
    facts.hello.gpus.push_back({gpu.device, gpu.name, gpu.memory_bytes, gpu.uuid});
  }
  facts.once_directory = options.runtime_directory + "/once";
  facts.zygote.can_restart = !options.zygote_command.empty();
  facts.zygote.loads = options.zygote_loads;
  facts.hello.own = !options.stays_as.empty();
  facts.hello.joined = options.join || facts.hello.own;
  facts.hello.gpus_by_uuid = true;
  if (!options.join) return facts;
  facts.hello.allocation = options.join->allocation;
  facts.zygote.can_restart = true;
  facts.zygote.loads = "the experiment's plugin";
  facts.stay.idle = options.join->idle;
  if (options.join->lasts) {
    facts.stay.until = now + *options.join->lasts;
    facts.stay.drain = std::min(options.join->drain, *options.join->lasts / 2);
  }
  return facts;
}

SetupExperiment as_found_by(const AgentOptions& options, SetupExperiment setup) {
  if (options.join && options.join->relay_port != 0) {
    setup.joined.relay_port = options.join->relay_port;
  }
  return setup;
}

std::map<std::string, std::string> zygote_environment_on(
    const NodeResources& node, std::map<std::string, std::string> environment) {
  if (node.gpus.empty()) environment.erase(kGpuTrialsVariable);
  return environment;
}

Sight sight_of(const std::string& experiment, const JoinedSetup& setup) try {
  const std::filesystem::path proof = std::filesystem::path(experiment) / setup.proof_file;
  if (read_file(proof) != setup.proof) return Sight::kNone;
  const std::string probe = fmt::format("{}-{}-{}", proof.string(), hostname(), ::getpid());
  const FileDescriptor made(::open(probe.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  if (!made.is_open()) return Sight::kReadOnly;
  return ::unlink(probe.c_str()) == 0 ? Sight::kWhole : Sight::kReadOnly;
} catch (const Error&) {
  return Sight::kNone;  // it is not there
}

bool sees_still(const std::string& former, const SetupExperiment& setup) {
  std::error_code unknown;
  const std::string& experiment = setup.experiment_directory;
  return sight_of(experiment, setup.joined) == Sight::kWhole &&
         std::filesystem::equivalent(former, experiment, unknown);
}

Participation prepare_to_join(const std::string& experiment, const JoinedSetup& setup,
                              const std::string& hostname) {
  Participation part;
  const Sight sight = sight_of(experiment, setup);
  part.sees_folder = sight == Sight::kWhole;
  if (!part.sees_folder && setup.relay_port == 0) {
    part.unfit = fmt::format(
        "it {} the experiment's folder {}: share the folder with "
        "this machine, at the same path",
        sight == Sight::kReadOnly ? "cannot write into" : "does not see", experiment);
    return part;
  }
  if (sight == Sight::kReadOnly) {
    part.notes.push_back(
        fmt::format("{} cannot write into {}: the driver's host takes its "
                    "checkpoints and output instead",
                    hostname, experiment));
  }
  for (const std::string& folder : setup.earlier) {
    std::error_code unknown;
    if (std::filesystem::exists(folder, unknown)) continue;
    part.unfit = fmt::format(
        "it does not see {}, and the program, which is executed here as well, takes the results of "
        "its earlier tune::run from there: share that folder with this machine, at the same path",
        folder);
    return part;
  }
  const std::string plugin = plugin_on_this_machine(experiment, setup, hostname, part);
  if (!part.unfit.empty()) return part;
  try {
    part.zygote_command =
        plugin.empty() ? command_on_this_machine(setup, hostname, part) : worker_command(plugin);
  } catch (const Error& error) {
    part.unfit = error.what();
  }
  if (!part.unfit.empty()) return part;
  if (::chdir(setup.working_directory.c_str()) != 0) {
    part.notes.push_back(fmt::format("{} has no folder {}: its trials run in {}", hostname,
                                     setup.working_directory,
                                     std::filesystem::current_path().string()));
  }
  part.zygote_log = fmt::format("{}/nodes/{}-{}.log", experiment, hostname, ::getpid());
  return part;
}

}  // namespace tune
