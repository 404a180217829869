// Machines that see a folder which looks like the experiment's and is not: an older copy of it, the
// one that its driver has left behind, or one that they may only read.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "core/agent/driver_search.h"
#include "core/refusal.h"
#include "process/far_machines.h"
#include "process/gated.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// Where every checkpoint of the sweep's trials with this iteration stands.
std::size_t checkpoints(const Sandbox& box, const std::string& folder, const std::string& name) {
  std::size_t found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(box.path() / folder)) {
    found += entry.is_directory() && entry.path().filename().string().starts_with(name);
  }
  return found;
}

// A sweep whose `results` is a link to the disk of its driver's host. A machine that joins shares
// that of the first host, and goes on seeing it when the driver moves.
struct TwoHosts : FarMachines {
  explicit TwoHosts(int trials)
      : FarMachines(gated_sweep(trials), "1", [](Sandbox& box) {
          for (const char* disk : {"first", "second"}) fs::create_directory(box.path() / disk);
          fs::create_directory_symlink("first", box.path() / "results");
        }) {}
  // It has all trials, which wait in their 15th step.
  std::unique_ptr<Running> sharing(int cpus) {
    kill_own_agent();
    auto agent = far_agent(box, "sharing", cpus, "mount --bind first second");
    CHECK(Sandbox::eventually([&] { return running_below(agent->pid()) == std::size_t(cpus); }));
    CHECK(Sandbox::eventually([&] { return reported(14) == std::size_t(cpus); }));
    return agent;
  }
  // Trials whose newest result is of that iteration, by a process that still runs.
  std::size_t reported(int iteration) const {
    std::size_t found = 0;
    for (const fs::path& trial : trial_folders(box, "results/s")) {
      const auto lines = lines_of(box.read(fs::relative(trial / "result.json", box.path())));
      if (lines.empty()) continue;
      const Value last = parse_json(lines.back(), "result.json");
      found +=
          last.get<int>("training_iteration") == iteration && ::kill(last.get<int>("pid"), 0) == 0;
    }
    return found;
  }
  void lose_driver_and_copy() {
    run->signal(SIGKILL);
    run->wait();
    CHECK(Sandbox::eventually([&] { return box.processes("redis-server").empty(); }));
    fs::copy(box.path() / "first/s", box.path() / "second/s", fs::copy_options::recursive);
    fs::remove(box.path() / "results");
    fs::create_directory_symlink("second", box.path() / "results");
  }
  void resume() { run.reset(new Running(box.start_tune({"resume", "results/s"}))); }
};

TEST_CASE("a machine that sees the folder which the driver has left joins that driver anew") {
  if (!has_mounts()) return;
  TwoHosts sweep(2);
  auto agent = sweep.sharing(2);
  sweep.lose_driver_and_copy();
  sweep.resume();
  CHECK(Sandbox::eventually(
      [&] { return count_events(sweep.box, "node_joined") == 4; }));  // twice each
  open_gate(sweep.box);
  const Finished finished = sweep.finish();
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  const Finished left = agent->wait(seconds(20));
  CHECK(left.code == 0);
  CHECK_HAS(left.err, "has the experiment's folder where this machine does not see it");
  CHECK_HAS(left.err, "joining again");
  check_complete(sweep.box, "results/s", 2, kGatedSteps);
  CHECK(checkpoints(sweep.box, "second", "checkpoint_000040") == 2);
  CHECK(checkpoints(sweep.box, "first", "checkpoint_000040") == 0);
}

TEST_CASE("what a machine has saved in the folder that was left takes no checkpoint's place") {
  if (!has_mounts()) return;
  TwoHosts sweep(2);
  auto agent = sweep.sharing(2);
  sweep.lose_driver_and_copy();
  open_gate(sweep.box);  // they train to their ends there
  CHECK(Sandbox::eventually([&] {
    try {
      return checkpoints(sweep.box, "first", "checkpoint_000040") == 2;
    } catch (const fs::filesystem_error&) {  // a folder went while it was looked through
      return false;
    }
  }));
  CHECK(checkpoints(sweep.box, "second", "checkpoint_000010") == 2);
  sweep.resume();
  sweep.finish();
  agent->wait(seconds(20));
  check_complete(sweep.box, "results/s", 2, kGatedSteps);
  CHECK(checkpoints(sweep.box, "second", "checkpoint_000010") == 2);  // the newest that is there
}

TEST_CASE("an older copy of the folder, and one that may only be read, are not the folder") {
  if (!has_mounts()) return;
  FarMachines sweep(gated_sweep(3));
  fs::create_directory(sweep.box.path() / "copy");
  CHECK(Sandbox::eventually([&] {  // files come and go meanwhile
    std::error_code failed;
    fs::copy(sweep.box.path() / "results/s", sweep.box.path() / "copy/s",
             fs::copy_options::recursive | fs::copy_options::overwrite_existing, failed);
    return !failed;
  }));
  sweep.box.write("copy/s/nodes/proof", "of an earlier driver");
  fs::remove(sweep.box.path() / "copy/s/nodes/join");  // as where an experiment is over
  auto older = far_agent(sweep.box, "older", 1, "mount --bind copy results");
  auto reader = far_agent(sweep.box, "reader", 1,
                          "mount --bind results results && mount -o remount,bind,ro results");
  CHECK(Sandbox::eventually(
      [&] { return sweep.runs_a_trial(*older) && sweep.runs_a_trial(*reader); }));
  sweep.run->signal(SIGKILL);
  sweep.run->wait();
  std::this_thread::sleep_for(2 * (DriverSearch::kSilence + DriverSearch::kLookEvery));
  sweep.run.reset(new Running(sweep.box.start_tune({"resume", "results/s"})));
  CHECK(Sandbox::eventually([&] { return count_events(sweep.box, "node_returned") == 3; }));
  open_gate(sweep.box);
  const Finished finished = sweep.finish();
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  CHECK_HAS(sweep.box.read("results/s/events.jsonl"), "cannot write into");
  for (const auto& agent : {older.get(), reader.get()}) CHECK(agent->wait(seconds(20)).code == 0);
  check_complete(sweep.box, "results/s", 3, kGatedSteps);
  CHECK(checkpoints(sweep.box, "results", "checkpoint_000040") == 3);
  CHECK(checkpoints(sweep.box, "copy", "checkpoint_000040") == 0);
}

}  // namespace
}  // namespace tune
