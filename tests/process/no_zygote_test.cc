// A node that can start workers no more, as when its plugin's file system does not come back. Its
// zygote is tried again for a minute first.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

TEST_CASE("a sweep whose only node starts no more workers ends, and can be resumed") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 30}",
                                .num_samples = 6,
                                .rest = "stop: {training_iteration: 8}\n"}));
  const std::string broken = (box.path() / "broken").string();
  box.write("worker.sh", "#!/bin/sh\n[ ! -e '" + broken +
                             "' ] || exit 7\nexec " TUNE_BINARY_DIR "/bin/tune-worker \"$@\"\n");
  std::filesystem::permissions(box.path() / "worker.sh", std::filesystem::perms::owner_all);
  box.set("TUNE_WORKER", (box.path() / "worker.sh").string());
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  box.write("broken", "");
  const auto pids = box.processes("tune-worker");
  REQUIRE(!pids.empty());
  CHECK(kill(pids.front(), SIGKILL) == 0);
  const Finished finished = run.wait(std::chrono::minutes(5));
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "tried again in 30 s (7 of 8 times)");
  CHECK_HAS(finished.err, "no node is left that could start one");
  CHECK_HAS(finished.err, "resume it with: tune resume results/s");
  check_nothing_left(box, "results/s");
  std::filesystem::remove(broken);
  const Finished resumed = box.tune({"resume", "results/s", "--quiet"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", 6, 8);
}

}  // namespace
}  // namespace tune
