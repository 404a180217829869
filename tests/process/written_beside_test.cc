// Checkpoints that are copied and written while the steps go on, and processes that are killed
// half way: the last whole one counts, and nothing else is lost.
#include <doctest/doctest.h>

#include <signal.h>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

// Saves after every second of 8 steps; the writing of the one after step 4 fails half way, long after
// the one before is whole.
void write_sweep(const Sandbox& box, const std::string& how, int ranks) {
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: write, fail_how: " + how + ", fail_at: 4, step_ms: 100}",
                  .num_samples = 1,
                  .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 2}\n"
                          "max_failures: 1\nresources_per_trial: {cpu: 2, ranks: " +
                          std::to_string(ranks) + "}\n",
                  .metric = "count"}));
}

void check_went_on_after_step_2(const Sandbox& box) {
  check_complete(box, "results/s", 1, 8);
  const auto trials = trial_folders(box, "results/s");
  REQUIRE(trials.size() == 1);
  const std::string results =
      box.read("results/s/" + trials[0].filename().string() + "/result.json");
  CHECK_HAS(lines_of(results).back(), "\"iterations_since_restore\":6");
  CHECK(box.is_quiet());
  check_nothing_left(box, "results/s");
}

TEST_CASE("a worker that dies while its checkpoint is written goes on from the one before") {
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    Sandbox box;
    write_sweep(box, "kill", ranks);
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK_HAS(run.err, "killed by signal 9 (SIGKILL)");
    check_went_on_after_step_2(box);
  }
}

TEST_CASE("a driver that is killed while a checkpoint is written loses nothing") {
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    Sandbox box;
    write_sweep(box, "hang", ranks);
    {
      Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
      // The step after the save has ended while the checkpoint is being written.
      REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 5); }));
      run.signal(SIGKILL);
      run.wait();
    }
    CHECK(box.is_quiet());
    const Finished resumed = box.tune({"resume", "results/s"});
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    check_went_on_after_step_2(box);
  }
}

}  // namespace
}  // namespace tune
