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

// A child of this process that waits to become the agent: it executes this program with the
// variable TUNE_AGENT_ORDER, which names its end of a SOCK_SEQPACKET socket, and TUNE_AGENT_ZYGOTE,
// "<pid>:<descriptor>": a zygote that is its child, with the other end of that one's control
// socket.
//
// For programs in another language, whose process is to be forked for the trials. The agent must be
// the zygote's parent, or it could not reap workers, and a process that is another program's image
// can only be the agent's child when it was forked before the agent was executed. So the caller
// forks three processes in a row, each the child of the one before: one executes the driver, one
// the agent, and the last stays as it is, the zygote. The agent is there before the driver knows
// what to tell it. The simpler way, a zygote that is the driver's or the caller's child, leaves
// workers without anyone who learns how they ended.
struct WaitingAgent {
  pid_t pid = -1;
  int order_socket = -1;
};

// Sends the order with the descriptors in it. The agent's zygote and its workers do not hold the
// lock, as they were forked before; they end with the agent, which does. Throws Error (kProcess).
void start_waiting_agent(const WaitingAgent& agent, const AgentOptions& options);

// In a process of its own: puts signals in order, runs the agent, and ends the process.
[[noreturn]] void be_agent(const AgentOptions& options);

// The options as start_agent_program() hands them over, and back. Throws Error (kProtocol).
std::string packed_options(const AgentOptions& options);
AgentOptions unpacked_options(std::string_view bytes);

}  // namespace tune
