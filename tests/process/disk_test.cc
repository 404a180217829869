// Disks that fill up, folders that go away or cannot be written: a clear error, and nothing lost
// that had been written.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/resource.h>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"
#include "skip.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTrials = 4;
constexpr std::size_t kSteps = 300;

std::string sweep() {
  return yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 1}",
               .num_samples = kTrials,
               .rest = "stop: {training_iteration: 300}\ncheckpoint: {frequency: 50}\n"
                       "store_patience_s: 1\n"});
}

const std::string kTune = std::string(TUNE_BINARY_DIR) + "/bin/tune";
const std::string kRun = kTune + " run sweep.yaml --name s --quiet --cpus 2";
const std::string kResume = kTune + " resume results/s --quiet --errored";

// In a namespace of its own, where the kernel allows that: its mounts end with it.
Finished with_mounts(const Sandbox& box, const std::string& script) {
  return box.run({"unshare", "-rm", "sh", "-c", script});
}

bool can_mount(const Sandbox& box) {
  fs::create_directory(box.path() / "results");
  if (with_mounts(box, "mount -t tmpfs none results").code == 0) return true;
  testing::skip("no mount namespaces here");
  return false;
}

bool is_clear_error(const std::string& text) {
  return testing::has(text, "error: ") && testing::has(text, "No space left on device");
}

TEST_CASE("a disk that is full at any stage ends in a clear error, and with room it is resumed") {
  const Sandbox probe;
  if (!can_mount(probe)) return;
  bool full_before_the_start = false;
  bool full_while_running = false;
  for (const int kib : {4, 16, 32, 64, 128, 256}) {
    CAPTURE(kib);
    Sandbox box;
    fs::create_directory(box.path() / "results");
    box.write("sweep.yaml", sweep());
    const Finished run = with_mounts(
        box, "mount -t tmpfs -o size=" + std::to_string(kib) + "k none results && " + kRun +
                 "; echo code=$?; mount -o remount,size=64m results;"
                 "if [ -e results/s/experiment.json ]; then echo begun; " +
                 kResume + "; else " + kRun +
                 "; fi; echo again=$?; mkdir kept; cp -r results/s kept");
    INFO(run.err);
    INFO(run.out);
    CHECK_FALSE(testing::has(run.out, "code=0"));
    CHECK(is_clear_error(run.err));
    const bool begun = testing::has(run.out, "begun");
    CHECK((!begun || testing::has(run.err, "tune resume results/s") ||
           testing::has(run.out, "code=1")));
    (begun ? full_while_running : full_before_the_start) = true;
    CHECK_HAS(run.out, "again=0");
    check_complete(box, "kept/s", kTrials, kSteps);
    CHECK(box.is_quiet());
  }
  CHECK(full_while_running);
  CHECK(full_before_the_start);
}

TEST_CASE("a limit on the size of files is an error with its remedy, not a signal") {
  Sandbox box;
  box.write("sweep.yaml", sweep());
  const Finished run = box.run({"bash", "-c", "ulimit -f 40; " + kRun});
  INFO(run.err);
  CHECK(run.code == 3);
  CHECK_HAS(run.err, "error: ");
  CHECK_HAS(run.err, "tune resume results/s");
  CHECK(box.is_quiet());
  const Finished resumed = box.tune({"resume", "results/s", "--quiet", "--errored"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", kTrials, kSteps);
}

TEST_CASE("a results folder that is removed while it runs ends the run with its name") {
  Sandbox box;
  box.write("sweep.yaml", sweep());
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 20); }));
  std::error_code ignored;  // what is written into it meanwhile
  while (fs::exists(box.path() / "results")) fs::remove_all(box.path() / "results", ignored);
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "results/s");
  CHECK_FALSE(testing::has(finished.err, "tune resume"));  // there is nothing to resume
  CHECK(box.is_quiet());
}

TEST_CASE("a run that ends in an error writes its table, also when run.json cannot be written") {
  Sandbox box;
  box.write("sweep.yaml", sweep());
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 20); }));
  fs::remove(box.path() / "results/s/run.json");
  fs::create_directory(box.path() / "results/s/run.json");
  for (pid_t store : box.processes("redis-server")) kill(store, SIGSTOP);
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "while ending: ");
  CHECK(lines_of(box.read("results/s/results.csv")).size() > 1);
  fs::remove(box.path() / "results/s/run.json");
  CHECK(box.tune({"resume", "results/s", "--quiet"}).code == 0);
  check_complete(box, "results/s", kTrials, kSteps);
}

TEST_CASE("a folder that can only be read is refused, and left as it is") {
  Sandbox box;
  if (!can_mount(box)) return;
  box.write("sweep.yaml", sweep());
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 20); }));
  run.signal(SIGINT);
  CHECK(run.wait().code == 128 + SIGINT);
  const std::string before = box.read("results/s/run.json");
  const std::string read_only =
      "mount --bind results results && mount -o remount,ro,bind results && ";
  const Finished resumed = with_mounts(box, read_only + kResume);
  INFO(resumed.err);
  CHECK((resumed.code == 2 || resumed.code == 3));
  CHECK_HAS(resumed.err, "Read-only file system");
  CHECK_HAS(resumed.err, "a folder you may write to");
  const Finished begun = with_mounts(box, read_only + kTune + " run sweep.yaml --name t --quiet");
  INFO(begun.err);
  CHECK(begun.code == 2);
  CHECK_HAS(begun.err, "Read-only file system");
  CHECK_HAS(begun.err, "--storage");
  CHECK(box.read("results/s/run.json") == before);
  const Finished looked = with_mounts(box, read_only + kTune + " status results/s");
  INFO(looked.err);
  CHECK(looked.code == 0);
  CHECK_HAS(looked.err, "Number of trials: ");
  CHECK(box.tune({"resume", "results/s", "--quiet"}).code == 0);
  check_complete(box, "results/s", kTrials, kSteps);
}

}  // namespace
}  // namespace tune
