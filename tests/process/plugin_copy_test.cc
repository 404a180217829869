// Machines that have another file than the driver's plugin at its path, or none.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "core/refusal.h"
#include "process/far_machines.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// A plugin that goes when the driver's own machine has loaded it.
struct OwnPlugin {
  testing::TemporaryFolder folder;
  fs::path file = folder.path() / "libcurves.so";
  OwnPlugin() { fs::copy_file(TUNE_SYNTHETIC_PLUGIN, file); }
  std::string sweep(int trials) const {
    return yaml(
        {.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: " + std::to_string(lasting(60)) + "}",
         .num_samples = trials,
         .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1}\n",
         .plugin = file});
  }
};

template <class Join>
void check_sweep(Joinable& sweep, int trials, Join join) {
  std::unique_ptr<Running> agent = join();
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*agent); }));
  const Finished finished = sweep.finish();
  INFO(finished.err);
  CHECK(testing::has(finished.err, "another file than the driver's") ==
        fs::exists(sweep.box.path() / "differs"));
  CHECK(agent->wait(seconds(20)).code == 0);
  check_complete(sweep.box, "results/s", trials, 8);
  check_nothing_left(sweep.box, "results/s");
}

TEST_CASE("a machine without the plugin loads its copy in the experiment's folder") {
  for (const bool is_other : {false, true}) {
    CAPTURE(is_other);
    const OwnPlugin plugin;
    Joinable sweep(plugin.sweep(6));
    fs::remove(plugin.file);
    if (is_other) sweep.box.write("differs", "");
    if (is_other) sweep.box.write(plugin.file.string(), "of yesterday");
    check_sweep(sweep, 6, [&] { return sweep.agent(); });
  }
}

TEST_CASE("a machine without the plugin and the folder fetches the copy") {
  if (!has_mounts()) return;
  const OwnPlugin plugin;
  FarMachines sweep(plugin.sweep(6));
  fs::remove(plugin.file);
  check_sweep(sweep, 6, [&] { return sweep.far("a"); });
  CHECK(fs::is_empty(sweep.box.path() / "a"));
}

// Of a machine with the folder and of one without it: neither has the plugin, whose copies in this
// folder are not fit either.
void check_is_out(const std::function<void(const fs::path& copies, const fs::path& name)>& spoil) {
  const bool has_far = has_mounts();
  for (const bool is_far : {false, true}) {
    if (is_far && !has_far) continue;
    CAPTURE(is_far);
    const OwnPlugin plugin;
    FarMachines sweep(plugin.sweep(6));
    fs::remove(plugin.file);
    spoil(sweep.box.path() / "results/s/plugin", plugin.file.filename());
    auto agent = is_far ? sweep.far("a") : sweep.agent();
    CHECK(agent->wait(seconds(40)).code != 0);
    const Finished finished = sweep.finish();
    INFO(finished.err);
    CHECK_HAS(finished.err, plugin.file.string());
    check_complete(sweep.box, "results/s", 6, 8);
  }
}

TEST_CASE("a machine that can have no copy of the plugin is out, and says where it looked") {
  check_is_out([](const fs::path& copies, const fs::path&) { fs::remove_all(copies); });
}

TEST_CASE("a machine whose copy of the plugin is another file is out") {
  check_is_out([](const fs::path& copies, const fs::path& name) {
    const fs::path copy = fs::directory_iterator(copies)->path() / name;
    std::ofstream(copy, std::ios::app) << "of others";  // a loader does not mind
  });
}

TEST_CASE("a resumed sweep keeps the copy, or takes the plugin that is there now") {
  const OwnPlugin plugin;
  Joinable sweep(plugin.sweep(3));
  const fs::path copies = sweep.box.path() / "results/s/plugin";
  const auto copy = [&] { return fs::directory_iterator(copies)->path().filename().string(); };
  const std::string first = copy();
  sweep.run->signal(SIGKILL);
  sweep.run->wait();
  std::ofstream(plugin.file, std::ios::app) << "built again";  // a loader does not mind
  const Finished resumed = sweep.box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(copy() != first);
  CHECK(std::distance(fs::directory_iterator(copies), fs::directory_iterator()) == 1);
  check_complete(sweep.box, "results/s", 3, 8);
}

}  // namespace
}  // namespace tune
