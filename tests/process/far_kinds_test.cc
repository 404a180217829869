// Each kind of trainable on a machine that has only what the manual says it needs: tune at another
// place than the driver's, and not the experiment's folder.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "process/far_machines.h"
#include "process/outcome.h"
#include "process/trainable_kind.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// A driver with one place for trials, and a machine `far` that has one as well.
struct FarKind {
  explicit FarKind(std::vector<std::string> command) {
    const fs::path there = box.path() / "there";
    fs::create_directories(there / "bin");
    fs::create_directories(there / "share/tune");
    for (const char* program : {"tune", "tune-worker"}) {
      fs::copy_file(fs::path(TUNE_BINARY_DIR) / "bin" / program, there / "bin" / program);
    }
    fs::copy(package(), there / "share/tune/python", fs::copy_options::recursive);
    fs::create_directories(box.path() / "far");
    fs::create_directories(box.path() / "interpreter");
    prepare = "mount -t tmpfs none '" + std::string(TUNE_BINARY_DIR) +
              "/bin' && mount -t tmpfs none '" + package().string() +
              "' && mount -t tmpfs none interpreter && ";
    this->command = std::move(command);
  }
  static fs::path package() { return fs::path(TUNE_SOURCE_DIR) / "trainables/python"; }

  void begin() {
    run.reset(new Running(box.start(command)));
    REQUIRE(Sandbox::eventually([&] { return !box.read("results/s/nodes/join").empty(); }));
    box.set("TUNE_JOIN", lines_of(box.read("results/s/nodes/join")).at(0));
    box.set("TMPDIR", (box.path() / "far").string());
    box.set("COLOUR", "red");
    const std::string script = "hostname far && " + prepare +
                               "mount -t tmpfs none results && exec there/bin/tune agent --cpus 1";
    agent.reset(new Running(box.start({"unshare", "-rmu", "sh", "-c", script})));
    box.set("TMPDIR", "/tmp");
  }
  std::vector<fs::path> trials_there() const {
    std::vector<fs::path> found;
    for (const fs::path& trial : trial_folders(box, "results/s")) {
      const std::string results = box.read(fs::relative(trial / "result.json", box.path()));
      if (testing::has(results, "\"hostname\":\"far\"")) found.push_back(trial);
    }
    return found;
  }
  Finished finish() {
    CHECK(Sandbox::eventually([&] { return !trials_there().empty(); }, seconds(60)));
    box.write("open", "");
    Finished finished = run->wait(seconds(100));
    INFO(finished.err);
    CHECK(finished.code == 0);
    const Finished over = agent->wait(seconds(20));
    INFO(over.err);
    CHECK(over.code == 0);
    check_nothing_left(box, "results/s");
    return finished;
  }

  Sandbox box;
  std::vector<std::string> command;
  std::string prepare;  // of the machine, in its own mount namespace
  std::unique_ptr<Running> run;
  std::unique_ptr<Running> agent;
};

std::vector<std::string> sweep_command() {
  return {TUNE_BINARY_DIR "/bin/tune", "run",    "sweep.yaml", "--name", "s",
          "--cpus",                    "1",      "--listen",   "lo"};
}

TEST_CASE("every kind of trainable runs on a machine that has its tune at another place") {
  if (!has_mounts()) return;
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    FarKind sweep(sweep_command());
    std::string text = kind.yaml;
    const std::string python = test_python();
    const bool is_python = testing::has(text, "interpreter: ");
    if (is_python) {  // that of the driver's machine alone
      fs::create_symlink(python, sweep.box.path() / "interpreter/python3");
      const std::string own = (sweep.box.path() / "interpreter/python3").string();
      text.replace(text.rfind(python), python.size(), own);
      sweep.box.set("TUNE_PYTHON", python);
    }
    sweep.box.write("sweep.yaml",
                    text + "config: {step_ms: {grid_search: [100, 101, 102, 103]}}\n"
                           "num_samples: 3\nmetric: count\nmode: max\nseed: 5\n"
                           "stop: {training_iteration: 10}\n" +
                        kind.if_it_saves("checkpoint: {frequency: 5}\n"));
    sweep.begin();
    const Finished finished = sweep.finish();
    check_complete(sweep.box, "results/s", 12, 10);
    CHECK(testing::has(finished.err, "far has no ") == is_python);
  }
}

TEST_CASE("a program's own trainable runs on a machine that has the program") {
  if (!has_mounts()) return;
  FarKind sweep({TUNE_BINARY_DIR "/tests/own_parts", "--cpus", "1", "--quiet", "--set", "listen=lo",
                 "--name", "s"});
  sweep.box.set("PAUSE_MS", "500");
  sweep.begin();
  sweep.finish();
}

TEST_CASE("a machine without a program's earlier results is out, and says what it lacks") {
  if (!has_mounts()) return;
  FarKind sweep({TUNE_BINARY_DIR "/tests/two_runs", "--cpus", "1", "--set", "listen=lo"});
  sweep.box.set("TWO_RUNS_PAUSE_MS", "1000");
  fs::create_directories(sweep.box.path() / "results");
  fs::create_directory_symlink("second", sweep.box.path() / "results/s");
  sweep.begin();
  CHECK(sweep.agent->wait(seconds(40)).code != 0);
  const Finished finished = sweep.run->wait(seconds(60));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(finished.err, "it does not see " + (sweep.box.path() / "results/first").string());
  CHECK_HAS(finished.err, "earlier tune::run");
}

// A program that says where it is and what it is given, and reports until the gate is open.
const std::string kTeller =
    "command:\n  - sh\n  - -c\n  - |\n"
    "    echo \"colour $COLOUR given $GIVEN in $PWD\"\n"
    "    echo 'tune: {\"loss\": 1}'; while [ ! -e \"$0\" ]; do sleep 0.1; done\n"
    "    echo 'tune: {\"loss\": 0}'\n"
    "  - GATE\nconfig: {x: {grid_search: [1, 2, 3]}}\nmetric: loss\nmode: min\nseed: 5\n"
    "env: {GIVEN: word}\n";

TEST_CASE("trials have the environment of their machine, and run in the driver's folder or its own") {
  if (!has_mounts()) return;
  for (const bool is_there : {true, false}) {
    CAPTURE(is_there);
    FarKind sweep({"sh", "-c",
                   "mkdir -p deep/inside && cd deep/inside && COLOUR=blue exec \"$0\" run "
                   "../../sweep.yaml --name s --cpus 1 --listen lo --storage ../../results",
                   TUNE_BINARY_DIR "/bin/tune"});
    const std::string box = sweep.box.path().string();
    std::string text = kTeller;
    text.replace(text.find("GATE"), 4, box + "/open");
    sweep.box.write("sweep.yaml", text);
    if (!is_there) sweep.prepare += "mount -t tmpfs none deep && ";
    sweep.begin();
    REQUIRE(Sandbox::eventually([&] { return !sweep.trials_there().empty(); }, seconds(60)));
    const std::string trial = sweep.trials_there().front().filename();
    const std::string place = is_there ? box + "/deep/inside" : box;
    const std::string said = "colour red given word in " + place + "\n";
    // While the trial runs there.
    CHECK(Sandbox::eventually([&] {
      return testing::has(sweep.box.tune({"logs", "results/s", trial}).out, said);
    }));
    const Finished finished = sweep.finish();
    CHECK_HAS(sweep.box.tune({"logs", "results/s", trial}).out, said);
    const std::string note = "far has no folder " + box + "/deep/inside: its trials run in " + box;
    const std::size_t first = finished.err.find(note);
    CHECK((first != finished.err.npos) == !is_there);
    CHECK(finished.err.find(note, first + (is_there ? 0 : 1)) == finished.err.npos);  // said once
  }
}

}  // namespace
}  // namespace tune
