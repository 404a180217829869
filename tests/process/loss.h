// A short sweep whose processes are killed or stopped, the finding of them, and the checks that all
// such tests end with.
#pragma once

#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/random.h"
#include "process/sweep.h"

namespace tune {

inline constexpr std::size_t kLossTrials = 8;
inline constexpr std::size_t kLossSteps = 6;

enum class Victim { kAgent, kZygote, kWorker, kStore };

inline std::string loss_sweep() {
  return yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 15}",
               .num_samples = kLossTrials,
               .rest = "stop: {training_iteration: 6}\ncheckpoint: {frequency: 2}\n"
                       "max_failures: 3\nstore_patience_s: 10\n"});
}

inline std::vector<pid_t> find_victim(const Sandbox& box, const Running& driver, Victim victim) {
  std::vector<pid_t> found;
  if (victim == Victim::kStore) return box.processes("redis-server");
  if (victim == Victim::kAgent) {  // a fork of the driver
    found = box.processes(std::string("\0--cpus\0", 8));
    std::erase(found, driver.pid());
    found.resize(
        std::min<std::size_t>(found.size(), 1));  // later ones are about to become something else
    return found;
  }
  // Workers are forked from the zygote and share its command line: it is the oldest.
  found = box.processes("tune-worker");
  if (victim == Victim::kZygote) found.resize(std::min<std::size_t>(found.size(), 1));
  if (victim == Victim::kWorker && !found.empty()) found.erase(found.begin());
  return found;
}

inline bool has_begun(const Sandbox& box) {
  return std::filesystem::exists(box.path() / "results/s/experiment.json");
}

inline Running start_or_resume(const Sandbox& box) {
  if (has_begun(box)) return box.start_tune({"resume", "results/s", "--quiet"});
  return box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--cpus", "3"});
}

// An experiment that goes on has said how; one that never began has left its name free.
inline void check_end_is_explained(const Sandbox& box, const Finished& finished) {
  INFO(finished.err);
  CHECK_HAS(finished.err, "error: ");
  CHECK((finished.code == 3 || finished.code == 2));
  if (!has_begun(box)) return;
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "tune resume results/s");
}

inline void check_goes_on(const Sandbox& box) {
  const Finished resumed = start_or_resume(box).wait();
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", kLossTrials, kLossSteps);
  check_nothing_left(box, "results/s");
}

// Some are drawn from longer times: a busy machine may take long to start what is to be lost.
inline std::chrono::microseconds random_moment(RandomStream& random, int tries) {
  constexpr std::chrono::microseconds kUsualLength{500'000};
  return std::chrono::microseconds(random.integer(0, (1 + tries % 5) * kUsualLength.count()));
}

}  // namespace tune
