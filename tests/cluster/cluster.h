// For sweeps on a real cluster: the sweep, and waiting for what happens in it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>

#include "process/outcome.h"
#include "process/sandbox.h"
#include "process/sweep.h"
#include "skip.h"

namespace tune {

enum class Takes { kMoments, kMinutes };

// Says that the test is skipped, then. TUNE_CLUSTER_TESTS=quick, as tests/run.sh --all has it, asks
// for those that bear a busy machine; 1 for those, too, that take minutes or a machine of their own.
inline bool is_not_asked_for(Takes takes) {
  const char* asked = std::getenv("TUNE_CLUSTER_TESTS");
  if (asked != nullptr && (takes == Takes::kMoments || std::string(asked) != "quick")) return false;
  testing::skip(takes == Takes::kMoments ? "a real Slurm and sshd want TUNE_CLUSTER_TESTS=quick"
                                         : "what takes minutes wants TUNE_CLUSTER_TESTS=1");
  return true;
}

// Trials of eight steps, whose pool has these further keys (each with two blanks before it).
inline std::string pooled_sweep(int trials, int step_ms, const std::string& pool) {
  return yaml(
      {.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: " + std::to_string(step_ms) + "}",
       .num_samples = trials,
       .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1}\npool:\n  poll: 1\n"
               "  node: {cpu: 1}\n" +
               pool});
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++count;
  }
  return count;
}

// The number of nodes that have joined the experiment s so far.
inline std::size_t joined(const Sandbox& box) {
  return count_of(box.read("results/s/events.jsonl"), "\"node_joined\"");
}

}  // namespace tune
