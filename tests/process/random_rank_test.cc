// Ranks of groups are killed or stopped at random moments: each time the whole group ends, goes on
// from its last whole checkpoint, and no step is lost or counted twice.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/random.h"
#include "process/sandbox.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRankTrials = 2;
constexpr std::size_t kRankSteps = 40;

// Workers write to files of their trials; the zygote they are forked from does not.
std::vector<pid_t> ranks_of(const Sandbox& box) {
  std::vector<pid_t> ranks;
  for (const pid_t pid : box.processes("tune-worker")) {
    std::error_code gone;
    const fs::path output = fs::read_symlink("/proc/" + std::to_string(pid) + "/fd/1", gone);
    if (output.filename().string().starts_with("stdout")) ranks.push_back(pid);
  }
  return ranks;
}

std::string rank_sweep(int ranks) {
  const std::string count = std::to_string(ranks);
  return std::string("plugin: ") + TUNE_SYNTHETIC_PLUGIN +
         "\n"
         "trainable: Faulty\n"
         "config: {fail_in: none, step_ms: 10, number: {grid_search: [1, 2]}}\n"
         "metric: count\n"
         "mode: max\n"
         "stop: {training_iteration: " +
         std::to_string(kRankSteps) +
         "}\n"
         "checkpoint: {frequency: 1}\n"
         "max_failures: 1000\n"
         "group_timeout_s: 1\nalone_timeout_s: 1\n"
         "hang_timeout_s: 10\n"  // for a group all of whose ranks are stopped: none is behind
         "resources_per_trial: {cpu: " +
         count + ", ranks: " + count + "}\n";
}

// The number of moments that came before the sweep's end.
int run_disturbed(int ranks, std::uint64_t number, int moments) {
  RandomStream random(test_seed(), "ranks " + std::to_string(ranks), number);
  Sandbox box;
  box.write("sweep.yaml", rank_sweep(ranks));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus",
                                std::to_string(ranks * static_cast<int>(kRankTrials)), "--quiet"});
  int done = 0;
  while (done < moments &&
         !run.ends_within(std::chrono::microseconds(random.integer(0, 400'000)))) {
    const std::vector<pid_t> pids = ranks_of(box);
    if (pids.empty()) continue;
    const auto one =
        static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(pids.size())));
    kill(pids[one], random.integer(0, 2) == 0 ? SIGKILL : SIGSTOP);
    ++done;
  }
  const Finished finished = run.wait(std::chrono::seconds(120));
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", kRankTrials, kRankSteps);
  check_nothing_left(box, "results/s");
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    const std::string error = box.read("results/s/" + trial.filename().string() + "/error.txt");
    CHECK((error.empty() || testing::has(error, "rank ")));
  }
  return done;
}

TEST_CASE("ranks that are killed or stopped at any moment cost their group no step") {
  for (const int ranks : {3, 4}) {
    CAPTURE(ranks);
    const int moments = share_of_kills(8);
    int done = 0;
    for (std::uint64_t number = 0; done < moments; ++number) {
      CAPTURE(number);
      REQUIRE(number < 10 * static_cast<std::uint64_t>(moments));
      done += run_disturbed(ranks, number, std::min(4, moments - done));
    }
  }
}

}  // namespace
}  // namespace tune
