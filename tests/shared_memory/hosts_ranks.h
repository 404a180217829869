// Runs a function in the ranks of one host, each in a forked process, which speak through shared
// memory.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainables/shared_memory/conversation.h"

namespace tune::testing {

struct HostRank {
  int rank;
  int size;
  shared_memory::Conversation& talk;

  // Waits for it.
  void all_reduce(shared_memory::Operator reduction, shared_memory::Type type, void* data,
                  std::size_t bytes);
  void broadcast(int root, void* data, std::size_t bytes);
  void barrier();
};

struct RankOutcome {
  std::string text;   // what the function returned
  std::string error;  // or threw
  int signal = 0;
};

using HostFunction = std::function<std::string(HostRank&)>;

// All ranks' outcomes; 30 s at most, then they are killed.
std::vector<RankOutcome> run_on_host(int size, const HostFunction& function,
                                     std::chrono::milliseconds timeout = std::chrono::seconds(20));

// The text of all ranks; fails the test for an error or a signal.
std::string text_of_all(const std::vector<RankOutcome>& outcomes);

}  // namespace tune::testing
