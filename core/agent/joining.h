// An agent's account of its machine, and whether that machine can take part in an experiment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/agent_machine.h"
#include "core/agent_contract.h"

namespace tune {

AgentFacts facts_of(const AgentOptions& options, AgentTime now);

// The driver's setup, with its port for checkpoints as this machine finds it.
SetupExperiment as_found_by(const AgentOptions& options, SetupExperiment setup);

struct Participation {
  std::string unfit;               // why this machine cannot take part; empty: it can
  bool sees_folder = false;        // the experiment's; else its checkpoints and output are relayed
  std::vector<std::string> notes;  // for the user
  std::vector<std::string> zygote_command;
  // The plugin's copy is to be fetched, and zygote_command is to name it then.
  bool fetches_plugin = false;
  std::string zygote_log;  // where it sees the folder
};
// The environment of a zygote on this node: without GPUs none of its trials has one.
std::map<std::string, std::string> zygote_environment_on(
    const NodeResources& node, std::map<std::string, std::string> environment);

// Of the folder that a driver has written this proof into. Reads and writes there, and may wait.
enum class Sight { kNone, kReadOnly, kWhole };
Sight sight_of(const std::string& experiment, const JoinedSetup& setup);
// Whether the folder that an agent has written into is the one of a later driver, with this setup.
bool sees_still(const std::string& former, const SetupExperiment& setup);

// Looks whether this machine can take part in the experiment of that folder, and enters the
// driver's directory if it is there. Reads files, and may wait for them.
Participation prepare_to_join(const std::string& experiment, const JoinedSetup& setup,
                              const std::string& hostname);

}  // namespace tune
