// A GPU on which every trial fails at once, and one that works.
#include <doctest/doctest.h>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"
#include "process/sweep.h"

namespace tune {
namespace {

TEST_CASE("trials that fail at once on one GPU run on the other, and it is set aside") {
  constexpr const char* kShown = "Set aside, as trials failed there: GPU 0 of ";
  Sandbox box;
  box.write("sweep.yaml", "plugin: " TUNE_SYNTHETIC_PLUGIN R"(
trainable: Faulty
config: {fail_in: setup, fail_how: exit, fail_gpu: "0", step_ms: 100}
num_samples: 8
stop: {training_iteration: 5}
resources_per_trial: {cpu: 1, gpu: 1}
)");
  Running running =
      box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--gpus", "2"});
  const auto is_shown = [&] {
    const Finished status = box.tune({"status", "results/s"});
    return testing::has(status.out + status.err, kShown);
  };
  CHECK(Sandbox::eventually(is_shown));
  const Finished run = running.wait();
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_HAS(run.err, "Number of trials: 8/8 (8 TERMINATED)");
  CHECK_HAS(run.err, " is set aside: 3 trials failed there before their first report");
  CHECK_HAS(run.err, kShown);
}

}  // namespace
}  // namespace tune
