// PoolOptions: the agents that an engine starts on other machines for a sweep (the key `pool`).
// Values only; what they mean is in tune/README.md, "A pool of machines".
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/resources.h"

namespace tune {

// An amount of time, as seconds or as text: 90, "90s", "5m", "4h", "1h30m".
class TimeSpan {
 public:
  TimeSpan() = default;
  TimeSpan(double seconds) : seconds_(seconds) {}                                   // NOLINT
  TimeSpan(std::integral auto seconds) : seconds_(static_cast<double>(seconds)) {}  // NOLINT
  TimeSpan(std::string text) : text_(std::move(text)) {}                            // NOLINT
  TimeSpan(const char* text) : text_(text) {}                                       // NOLINT
  // Throws Error (kBadInput) when the text is not a time.
  double seconds() const;

 private:
  std::string text_;  // empty: the number counts
  double seconds_ = 0;
};

struct PoolNode {
  std::optional<double> cpu = {};  // without a node: what one trial needs
  double gpu = 0;
  MemorySize memory = {};  // 0: none is asked for

  bool is_given() const { return cpu || gpu > 0 || memory.bytes() > 0; }
};

struct PoolHost {
  std::string name;                // as ssh takes it: "node7", "alice@node7"
  std::optional<double> cpu = {};  // instead of its own
  std::optional<double> gpu = {};
};

struct PoolOptions {
  // slurm, ssh, kubernetes, ray, command, pbs, lsf, grid_engine, htcondor or flux; empty: there is
  // no pool.
  std::string engine = {};
  int min = 0;  // agents that stay, also when no trial waits
  // Agents at the same time. Nothing: one on each host that is named or that the job has, where the
  // engine has such; else 16.
  std::optional<int> max = {};
  PoolNode node = {};
  TimeSpan time = {};          // of an allocation; 0: the engine's own limit
  TimeSpan drain = 120;        // trials save and leave so long before the end
  TimeSpan idle = 300;         // an agent without a trial leaves after so long
  TimeSpan join_within = 600;  // an allocation that runs and has no agent after so long is ended
  TimeSpan poll = 15;          // how often the engine is asked
  int backlog = 2;             // allocations that wait in the engine's queue
  std::vector<std::string> submit = {};  // words for the engine's command, passed on untouched
  std::vector<std::string> setup = {};   // lines of shell before the agent: "module load cuda"
  bool local = false;                    // the driver's own machine takes trials, too
  std::string inside = "agents";     // in a job of the engine: its nodes, or `submit` all the same
  std::vector<PoolHost> hosts = {};  // of ssh
  bool tunnel = false;               // of ssh: the way back goes through the connection
  std::vector<std::string> start = {};  // of command: the words of its three programs
  std::vector<std::string> list = {};
  std::vector<std::string> stop = {};
  std::string program = {};  // tune on the nodes; empty: this one's path
  // That driver and nodes see at the same path, where nodes do not see the experiment's: for the
  // token, the script and what agents print. "~/" at its begin is the home. Empty: the
  // experiment's.
  std::string folder = {};
  std::string image = {};  // of kubernetes: with tune in its PATH, unless `program` says where
  std::string queue = {};  // of kubernetes: Kueue's, for the Jobs; empty: none
  std::string patch = {};  // of kubernetes: YAML for `kubectl patch` of each Job; empty: none
  std::string interpreter = {};  // of ray: a Python that has Ray; empty: python3

  bool is_given() const { return !engine.empty(); }
};

}  // namespace tune
