// The agent as this program executed again, for a driver that has threads.
//
// The simpler ways fail. A child forked from a process with threads has the locks that other
// threads held at that moment, locked for ever: its first allocation may wait for ever, once in
// some thousand runs. A separate agent program may be missing: programs that call tune::run are
// copied about alone. Calling main() again would repeat, before the agent is there, everything that
// a program does before tune::run, which may itself make threads. So an initialiser that runs
// before main() finds the order in the environment, becomes the agent, and never returns. The agent
// may therefore use no object that has an initialiser of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/agent/agent.h"

namespace tune {

// Executes this program with its own arguments as the agent. `options` holds no zygote to fork.
// Returns the pid. Throws Error (kProcess). Safe with threads.
pid_t start_agent_program(const AgentOptions& options);

// In a process of its own: puts signals in order, runs the agent, and ends the process.
[[noreturn]] void be_agent(const AgentOptions& options);

// The options as start_agent_program() hands them over, and back. Throws Error (kProtocol).
std::string packed_options(const AgentOptions& options);
AgentOptions unpacked_options(std::string_view bytes);

}  // namespace tune
