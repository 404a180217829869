// tune agent, token, nodes and drain: machines that join a running experiment. All return an exit
// code and throw Error.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tune {

struct AgentArguments {
  std::string join_file;  // empty: the token stands in TUNE_JOIN
  std::string name;       // of the allocation that an engine has started it in; empty: none
  std::optional<double> cpus;
  std::optional<double> gpus;
  std::string idle;   // leaves after so long without a trial; empty: never
  std::string until;  // has left by then; empty: no end
  std::string drain = "2m";
  bool wait_gpus = false;
  bool stay = false;  // when an experiment is over, it waits for the next one with these keys
};
int agent_command(const AgentArguments& arguments);

struct TokenArguments {
  std::string directory;
  std::string keys;  // instead: a file with the keys of several experiments
  bool rotate = false;
  std::vector<std::string> addresses;  // HOST:PORT in the token instead of the driver's own
};
int token_command(const TokenArguments& arguments);

int nodes_command(const std::string& directory);

struct DrainArguments {
  std::string directory;
  std::string node;
};
int drain_command(const DrainArguments& arguments);

}  // namespace tune
