// Machines that do not see the experiment's folder: their agents run where an empty folder stands
// in its place.
#include <doctest/doctest.h>

#include <chrono>

#include "core/refusal.h"
#include "process/far_machines.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

std::string between(const std::string& line, const std::string& before, char after) {
  const std::size_t begin = line.find(before);
  if (begin == std::string::npos) return {};
  const std::size_t from = begin + before.size();
  return line.substr(from, line.find(after, from) - from);
}

// Every trial has its last checkpoint, the first line of each attempt that was not lost, and
// nothing that is half there.
void check_files(const Sandbox& box, std::size_t trials) {
  std::size_t whole = 0;
  for (const fs::path& trial : box.of_trials("results/s", "result.json")) {
    for (const auto& entry : fs::directory_iterator(box.path() / trial.parent_path())) {
      const std::string name = entry.path().filename();
      CHECK_MESSAGE(!name.starts_with("."), entry.path());
      whole += name.starts_with("checkpoint_000008");
    }
  }
  CHECK(whole == trials);
  std::size_t attempts = 0;
  for (const std::string& line : lines_of(box.read("results/s/events.jsonl"))) {
    if (!testing::has(line, "\"event\":\"attempt_ended\"")) continue;
    if (testing::has(line, "\"outcome\":\"lost\"")) continue;
    const fs::path folder = box.path() / "results/s" / between(line, "\"trial\":\"", '"');
    const std::string said = "attempt " + between(line, "\"attempt\":", ',');
    INFO(line);
    CHECK_HAS(read_file(folder / "stdout"), said);
    CHECK_HAS(read_file(folder / "stderr"), said);
    ++attempts;
  }
  CHECK(attempts >= trials);
}

TEST_CASE("checkpoints and output of machines without the folder reach it, and go from there") {
  if (!has_mounts()) return;
  const std::string text = joinable_sweep(8, 60, "lease_s: 4\n");
  FarMachines sweep(text);
  auto first = sweep.far("a");
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*first); }));
  sweep.kill_own_agent();
  auto second = sweep.far("b");
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*second); }));
  const Finished drain = sweep.box.tune({"drain", "results/s", sweep.node_of(*first)});
  INFO(drain.err);
  CHECK(drain.code == 0);
  CHECK(first->wait(seconds(30)).code == 0);
  const Finished finished = sweep.finish();
  INFO(finished.err);
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  CHECK(second->wait(seconds(20)).code == 0);
  check_complete(sweep.box, "results/s", 8, 8);
  check_files(sweep.box, 8);
  CHECK(fs::is_empty(sweep.box.path() / "a"));  // what an agent has written goes with it
  CHECK(fs::is_empty(sweep.box.path() / "b"));
  check_nothing_left(sweep.box, "results/s");

  Sandbox calm;
  calm.write("sweep.yaml", text);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  CHECK(lasting_table(sweep.box, "results/s") == lasting_table(calm, "results/s"));
}

TEST_CASE("a machine without the folder trains on while its driver is killed and comes back") {
  if (!has_mounts()) return;
  FarMachines sweep(joinable_sweep(6, 60, "lease_s: 6\npatience_s: 30\n"));
  auto agent = sweep.far("a");
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*agent); }));
  sweep.run->signal(SIGKILL);
  sweep.run->wait();
  const Finished resumed = sweep.box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(agent->wait(seconds(20)).code == 0);
  check_complete(sweep.box, "results/s", 6, 8);
  check_files(sweep.box, 6);
}

// Runs a driver whose `results` are a disk of that size, which it alone sees; gives the disk room,
// and resumes.
std::string on_small_disk(int mib) {
  const std::string tune = TUNE_BINARY_DIR "/bin/tune";
  return "mount -t tmpfs -o size=" + std::to_string(mib) + "m none results && " + tune +
         " run sweep.yaml --name s --cpus 1 --listen lo; echo code=$?;"
         " mount -o remount,size=256m results; " +
         tune + " resume results/s --errored; echo again=$?; mkdir kept; cp -r results/s kept";
}

TEST_CASE("checkpoints that fill the disk of the driver's host cost no result") {
  if (!has_mounts()) return;
  Sandbox box;
  fs::create_directory(box.path() / "results");
  box.write("sweep.yaml",
            yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 60, weights_mb: 4}",
                  .num_samples = 4,
                  .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1}\n"
                          "patience_s: 30\nlease_s: 6\nstore_patience_s: 1\n"}));
  // A copy of the plugin is on that disk, too.
  const auto plugin_mib = static_cast<int>(fs::file_size(TUNE_SYNTHETIC_PLUGIN) >> 20);
  Running driver = box.start({"unshare", "-rm", "sh", "-c", on_small_disk(9 + plugin_mib)});
  REQUIRE(Sandbox::eventually([&] { return testing::has(driver.said(), "TUNE_JOIN="); }));
  box.set("TUNE_JOIN", between(driver.said(), "TUNE_JOIN=", ' '));
  auto agent = far_agent(box, "a");
  const Finished finished = driver.wait(seconds(100));
  INFO(finished.out);
  INFO(finished.err);
  CHECK_HAS(finished.out, "code=1");
  CHECK_HAS(finished.err, "No space left on device");
  CHECK_HAS(finished.out, "again=0");
  check_complete(box, "kept/s", 4, 8);
  agent->wait(seconds(40));
  CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
