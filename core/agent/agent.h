// The node agent: owns a node's workers from their launch to their reaping and relays their
// messages to the driver. One process per node, with one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/join_token.h"
#include "core/resources.h"

namespace tune {

// Stands in the runtime folder of a driver's own agent while that would go on without its driver.
inline constexpr const char* kStaysFile = "stays";

// Where an agent finds the driver's port for checkpoints through a tunnel, beside the driver's own.
inline constexpr const char* kRelayPortVariable = "TUNE_RELAY_PORT";

// An agent that joins a running experiment: it has no driver of its own, and learns from the one
// that it finds what there is to load.
struct JoinOptions {
  JoinToken token;
  std::string name;  // unique among the agents of an experiment and their former lives
  std::string allocation = {};  // that an engine has started it in; empty: none
  std::string file = {};  // that the token was read from, to be read again; empty: none
  // It leaves when this much time is left of `lasts`, and when it had no trial for so long (0: it
  // stays).
  std::chrono::nanoseconds drain = std::chrono::minutes(2);
  std::optional<std::chrono::nanoseconds> lasts = {};
  std::chrono::nanoseconds idle{};
  std::chrono::nanoseconds patience = std::chrono::minutes(1);  // until it has found a driver
  std::function<void(const std::string& text)> say = {};        // to its user
  std::uint32_t relay_port = 0;  // instead of the one that the driver tells; 0: that
};

struct AgentOptions {
  std::string driver_address;  // "ipc:///path"
  int driver_alive_fd = -1;    // its end means that the driver is gone: everything ends
  // Not empty: an own agent that outlives its driver. It joins under this name by the token that
  // driver_alive_fd gives once the driver listens, and from then on the end of that means nothing.
  std::string stays_as = {};
  // Sockets and locks of once_per_node of this run. Removed when the driver goes without a word.
  std::string runtime_directory;
  NodeResources resources;
  std::string hostname;
  std::string ip;
  // Forked first of all; runs the trainables of this program and never returns. Empty: the agent
  // executes zygote_command.
  std::function<void(int control_socket)> zygote;
  // Executed when there is no `zygote`, or when the first zygote has died. "{control}" in it, or in
  // its environment, becomes the descriptor's number.
  // The first zygote, when it is a child of this process already (core/agent/agent_program.h,
  // WaitingAgent), and the agent's end of its control socket. -1: it is not.
  pid_t zygote_pid = -1;
  int zygote_control = -1;
  std::vector<std::string> zygote_command;
  std::map<std::string, std::string> zygote_environment;
  std::string zygote_loads;             // the plugin, or the program, in messages
  // stdout and stderr of an executed zygote, and of an agent that outlives its driver; appended to.
  std::string zygote_log;
  std::int64_t trial_memory_bytes = 0;  // a limit for all ranks of an attempt together; 0: none
  int lock_fd = -1;                     // inherited by zygote and workers, never closed
  int runtime_lock_fd = -1;             // of the runtime folder, held as long as the agent lives
  std::optional<JoinOptions> join = {};  // the address, the zygote and its log are not used then
};

// Runs until every worker is reaped after the driver has ordered the end or is gone. Call it in a
// process of its own, without threads: it changes signal handling, makes itself a subreaper and
// leads a session. Returns the exit code. Throws Error (kProcess) when it cannot start.
int run_agent(const AgentOptions& options);

struct JoinedEnd {
  std::string cause;         // empty: the experiment is over
  bool is_failure = false;   // it could not take part
  bool joins_again = false;  // it may, as another agent
  JoinToken token;           // the newest
  bool has_lost_driver = false;
  bool was_told_to_end = false;  // by a signal
};
// The same for an agent that joins. Throws Error (kBadInput) when its token is not a token.
JoinedEnd run_joined_agent(const AgentOptions& options);

// The name by which the driver knows the agent process of that host, which ends with it.
std::string agent_identity(const std::string& hostname, pid_t pid);
// Names one life of an agent of this process that joins: a name that comes again would take over
// the connection of the other.
std::string life_name();

}  // namespace tune
