// Bad input and bad days: a clear error with the values and a next step, nothing begun or lost.
#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

TEST_CASE("bad input is refused before anything is written") {
  struct Case {
    std::string text;
    std::vector<std::string> arguments;
    std::vector<std::string> expected;
  };
  const std::string plugins = std::string(TUNE_BINARY_DIR) + "/tests/";
  const Case cases[] = {
      {yaml({.rest = "stop: {training_iteration: 3}\nnum_sample: 4\n"}),
       {},
       {"num_sample", "num_samples", "sweep.yaml:8"}},
      {yaml({.config = "{lr: {unifrom: [0, 1]}}"}), {}, {"config/lr", "uniform"}},
      {yaml({.rest = "stop: {training_iteration: 3}\nresources_per_trial: {gpu: 4}\n"}),
       {"--gpus", "0"},
       {"needs 4 GPUs", "the node has 0"}},
      {yaml({.rest = "stop: {training_iteration: 3}\nresources_per_trial: {cpu: 64}\n"}),
       {"--cpus", "2"},
       {"needs 64 CPUs", "the node has 2"}},
      {yaml({.rest = "stop: {training_iteration: 3}\n"
                     "resources_per_trial: {cpu: 4, gpu: 4, ranks: 4}\n"}),
       {"--cpus", "8", "--gpus", "2"},
       {"4 ranks need 4 GPUs, the node has 2", "--gpus"}},
      {yaml({.rest = "stop: {training_iteration: 3}\n"
                     "resources_per_trial: {gpu: 6, ranks: 4}\n"}),
       {"--gpus", "8"},
       {"resources_per_trial: gpu 6 over 4 ranks is 1.5 a rank: it must be whole, or below 1"}},
      {yaml({.rest = ""}), {}, {"stop"}},
      {yaml({.plugin = "nowhere/libx.so"}), {}, {"nowhere/libx.so"}},
      {yaml({.rest = "stop: {training_iteration: 3}\nstore: 'redis://localhost:x/0'\n"}),
       {},
       {"redis://"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    Sandbox box;
    box.write("sweep.yaml", c.text);
    std::vector<std::string> arguments = {"run", "sweep.yaml", "--name", "s"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const Finished run = box.tune(arguments);
    INFO(run.err);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    for (const std::string& part : c.expected) CHECK_HAS(run.err, part);
    CHECK_FALSE(fs::exists(box.path() / "results"));
    CHECK(box.is_quiet());
  }
}

TEST_CASE("a sweep whose metric is never reported ends by itself, and its results stay") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.rest = "scheduler: {asha: {max_t: 5}}\n", .metric = "accuracy"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "'accuracy' is in no result so far");
  CHECK_HAS(run.err, "results have: mean_accuracy");
  CHECK_HAS(run.err, "max_t 5");
  CHECK(std::filesystem::exists(box.path() / "results/s/results.csv"));
  CHECK_HAS(run.err, "Number of trials: ");  // the last table
  CHECK_HAS(run.err, "results/s/results.csv");
  CHECK(box.is_quiet());
  const Finished again = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(again.err);
  CHECK(again.code == 2);
  CHECK_HAS(again.err, "has failed");
  CHECK_HAS(again.err, "--fresh");
  CHECK_FALSE(testing::has(again.err, "tune resume"));
}

TEST_CASE("a broken plugin is refused with what is wrong with it") {
  struct Case {
    std::string plugin;
    std::string trainable;
    std::vector<std::string> expected;
  };
  const std::string folder = std::string(TUNE_BINARY_DIR) + "/tests/";
  const Case cases[] = {
      {folder + "libno_symbol.so", "Curve", {"tune_plugin"}},
      {folder + "libother_protocol.so", "Curve", {"version 999 of the worker contract"}},
      {folder + "libundefined_symbol.so", "Curve", {"nobody_has_this"}},
      {TUNE_SYNTHETIC_PLUGIN, "Curv", {"Curv", "Curve"}},
      {"sweep.yaml", "Curve", {"sweep.yaml"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.plugin);
    Sandbox box;
    box.write("sweep.yaml", yaml({.trainable = c.trainable, .plugin = c.plugin}));
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
    INFO(run.err);
    CHECK(run.code == 2);
    for (const std::string& part : c.expected) CHECK_HAS(run.err, part);
    CHECK_FALSE(fs::exists(box.path() / "results"));  // the name is free once it is mended
    CHECK(box.is_quiet());
  }
}

TEST_CASE("a refused run takes away the folders that it has made, and no others") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.trainable = "Curv"}));
  fs::create_directories(box.path() / "mine");
  for (const char* storage : {"mine", "mine/a/b"}) {
    CAPTURE(storage);
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--storage", storage});
    INFO(run.err);
    CHECK(run.code == 2);
    REQUIRE(fs::exists(box.path() / "mine"));
    CHECK(fs::is_empty(box.path() / "mine"));
  }
}

TEST_CASE("a plugin that is refused after it has loaded for long shows no table before") {
  Sandbox box;
  box.set("FORGETFUL_LOAD_MS", "1500");  // more than a table of trials that wait was held back for
  box.write("sweep.yaml",
            yaml({.trainable = "Forgetful",
                  .rest = "stop: {training_iteration: 3}\ncheckpoint: {frequency: 2}\n",
                  .plugin = std::string(TUNE_BINARY_DIR) + "/tests/libforgetful.so"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "Forgetful has no save and load");
  CHECK_FALSE(testing::has(run.err, "PENDING"));
  CHECK_FALSE(testing::has(run.err, "Number of trials"));
}

TEST_CASE("what the plugin lacks is told with file, line and key, before any table") {
  struct Case {
    SweepText sweep;
    std::vector<std::string> arguments;
    std::string expected;
  };
  const std::string library = TUNE_SYNTHETIC_PLUGIN;
  const std::string broken = std::string(TUNE_BINARY_DIR) + "/tests/libno_symbol.so";
  const Case cases[] = {
      {{.trainable = "Curv"},
       {},
       "error: sweep.yaml:2: trainable: there is no 'Curv' in " + library +
           " (did you mean 'Curve'?); it has: "},
      {{},
       {"--set", "trainable=Curv"},
       "error: --set trainable=Curv: trainable: there is no 'Curv'"},
      {{.plugin = broken}, {}, "error: sweep.yaml:1: plugin: "},
      {{.trainable = "Forgetful",
        .rest = "stop: {training_iteration: 3}\ncheckpoint:\n  frequency: 2\n",
        .plugin = std::string(TUNE_BINARY_DIR) + "/tests/libforgetful.so"},
       {},
       "error: sweep.yaml:9: checkpoint/frequency: is 2, but Forgetful has no save and load"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.expected);
    Sandbox box;
    box.write("sweep.yaml", yaml(c.sweep));
    std::vector<std::string> arguments = {"run", "sweep.yaml", "--name", "s"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const Finished run = box.tune(arguments);
    INFO(run.err);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK_FALSE(testing::has(run.err, "PENDING"));  // no table of trials that wait for it
    CHECK_HAS(run.err, c.expected);
    CHECK_FALSE(fs::exists(box.path() / "results"));
    CHECK(box.is_quiet());
    if (c.arguments.empty()) {  // in the words of the other command
      const Finished told = box.tune({"validate", "sweep.yaml"});
      CHECK_HAS(run.err, told.err);
    }
  }
}

TEST_CASE("mistakes in the sweep, its plugin and its resources are told at once, nothing begun") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.trainable = "Curv",
                                .rest = "stop: {training_iteration: 3}\n"
                                        "resources_per_trial: {gpu: 4}\n"}));
  const Finished unfit = box.tune({"run", "sweep.yaml", "--gpus", "0"});
  INFO(unfit.err);
  CHECK(unfit.code == 2);
  CHECK_HAS(unfit.err, "sweep.yaml:2: trainable: there is no 'Curv'");
  CHECK_HAS(unfit.err, "sweep.yaml:8: resources_per_trial: a trial needs 4 GPUs, the node has 0");
  CHECK(lines_of(unfit.err).size() == 2);

  const Finished wrong = box.tune({"run", "sweep.yaml", "--gpus", "0", "--set", "num_sample=4"});
  INFO(wrong.err);
  CHECK(wrong.code == 2);
  CHECK_HAS(wrong.err, "trainable: there is no 'Curv'");
  CHECK_HAS(wrong.err, "num_sample");
  CHECK_HAS(wrong.err, "needs 4 GPUs");
  CHECK(lines_of(wrong.err).size() == 3);
  CHECK_FALSE(fs::exists(box.path() / "results"));
}

TEST_CASE("a metric that no result has is said early and is an error at the end") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 2, .metric = "mean_acuracy"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code != 0);
  CHECK_HAS(run.err, "did you mean 'mean_accuracy'?");
  CHECK(lines_of(box.read("results/s/results.csv")).size() == 3);  // nothing is lost
}

TEST_CASE("a finished experiment's folder is refused, and --fresh moves it aside") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 1}));
  REQUIRE(box.tune({"run", "sweep.yaml", "--name", "s", "--quiet"}).code == 0);
  const std::string before = box.read("results/s/results.csv");
  const Finished again = box.tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(again.code == 2);
  CHECK_HAS(again.err, "finished");
  CHECK_HAS(again.err, "--fresh");
  CHECK(box.read("results/s/results.csv") == before);
  CHECK(box.tune({"run", "sweep.yaml", "--name", "s", "--fresh", "--quiet"}).code == 0);
  CHECK(box.read("results/s.old-1/results.csv") == before);
  // Resuming a finished one finds nothing to do.
  const Finished resumed = box.tune({"resume", "results/s"});
  CHECK(resumed.code == 0);
  CHECK(box.tune({"resume", "results"}).code == 2);
}

TEST_CASE("a fresh start that is refused leaves the experiment of that name where it was") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 1}));
  REQUIRE(box.tune({"run", "sweep.yaml", "--name", "s", "--quiet"}).code == 0);
  const std::string before = box.read("results/latest/results.csv");
  const auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", "sweep.yaml", "--name", "s", "--fresh", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = box.tune(arguments);
    INFO(run.err);
    CHECK(run.code == 2);
    CHECK(box.read("results/latest/results.csv") == before);
    CHECK_FALSE(fs::exists(box.path() / "results/s.old-1"));
    CHECK(box.tune({"best", "results/latest"}).code == 0);
    return run;
  };
  refused({"--set", "trainable=Curv"});
  const std::string nobody = (box.path() / "nobody").string();
  const Finished lost = refused({"--store", "unix://" + nobody});
  CHECK_HAS(lost.err, "the store at " + nobody + " does not answer");
  CHECK_HAS(lost.err, "error: connecting to the store at " + nobody);
  CHECK_FALSE(testing::has(lost.err, "is kept"));
  box.set("TUNE_REDIS_SERVER", "/nowhere/redis-server");
  refused({});
}

TEST_CASE("a running experiment is refused with its processes, and a wait for it is told") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.config = "{lr: 0.1, step_ms: 10}",
                                .num_samples = 1,
                                .rest = "stop: {training_iteration: 100000}\n"}));
  Running running = box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  const std::string driver = std::to_string(running.pid()) + " (tune)";
  const Finished refused = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, driver);
  CHECK_HAS(refused.err, "tune status results/s");
  CHECK_FALSE(testing::has(refused.err, "tune resume"));
  CHECK_FALSE(testing::has(refused.err, "--fresh"));
  const Finished waited = box.tune({"run", "sweep.yaml", "--name", "s", "--fresh"});
  INFO(waited.err);
  CHECK(waited.code == 2);
  CHECK_HAS(waited.err, "waiting up to 15 s for process " + driver);
  CHECK_HAS(waited.err, "is in use by process " + driver);
  CHECK_FALSE(running.ends_within(std::chrono::microseconds(0)));
  running.signal(SIGINT);
  CHECK(running.wait().code == 128 + SIGINT);
}

TEST_CASE("the command that resumes can be pasted, whatever the folder's name") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.config = "{lr: 0.1, step_ms: 10}",
                                .num_samples = 1,
                                .rest = "stop: {training_iteration: 100}\ncheckpoint: "
                                        "{frequency: 1}\n"}));
  const std::string storage = "it's my $HOME";
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--storage", storage});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, storage + "/s", 3); }));
  run.signal(SIGINT);
  const Finished interrupted = run.wait();
  INFO(interrupted.err);
  const Finished refused =
      box.tune({"run", "sweep.yaml", "--name", "s", "--storage", storage, "--quiet"});
  const std::string command = "tune resume 'it'\\''s my $HOME/s'";
  CHECK_HAS(interrupted.err, command);
  CHECK_HAS(refused.err, command);
  const Finished resumed =
      box.run({"sh", "-c", std::string(TUNE_BINARY_DIR) + "/bin/" + command + " --quiet"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
}

TEST_CASE("a name is free when a driver was killed before it began, and when a folder is empty") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 1}));
  box.write("results/s/lock", "");
  box.write("results/s/zygote.log", "");
  box.write("results/s/store/appendonlydir/appendonly.aof.1.incr.aof", "half a jour");
  box.write("results/s/experiment.json.tmp-77", "{");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_FALSE(fs::exists(box.path() / "results/s/experiment.json.tmp-77"));
  box.write("results/t/lock", "");
  box.write("results/t/thesis.tex", "years of work");
  const Finished refused = box.tune({"run", "sweep.yaml", "--name", "t"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "holds no experiment");
  CHECK(box.read("results/t/thesis.tex") == "years of work");
}

TEST_CASE("a results folder that cannot be written is refused") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 1}));
  box.write("file", "not a folder");
  for (const std::string& storage : {std::string("file"), "too-long/" + std::string(300, 'x')}) {
    const Finished run = box.tune({"run", "sweep.yaml", "--storage", storage, "--name", "s"});
    INFO(run.err);
    CHECK(run.code == 2);
    CHECK_HAS(run.err, "making the results folder " + storage);
    CHECK_HAS(run.err, "--storage");
  }
}

TEST_CASE("without redis-server the package and the alternative are named") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 1}));
  box.set("TUNE_REDIS_SERVER", "/nowhere/redis-server");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "redis-server");
  CHECK_HAS(run.err, "store: redis://");
  CHECK(box.is_quiet());
  CHECK_FALSE(fs::exists(box.path() / "results/s"));
}

TEST_CASE("an existing server is used, with the right password only") {
  Sandbox box;
  const std::string socket = (box.path() / "tmp/r").string();
  Running server = box.start({"redis-server", "--port", "0", "--unixsocket", socket, "--appendonly",
                              "yes", "--requirepass", "secret", "--dir", box.path()});
  REQUIRE(Sandbox::eventually([&] { return fs::exists(socket); }));
  box.write("sweep.yaml", yaml({.num_samples = 2}));
  const auto run = [&](const std::string& store, const std::string& name) {
    return box.tune({"run", "sweep.yaml", "--name", name, "--store", store});
  };
  const Finished wrong = run("unix://:guess@" + socket, "wrong");
  INFO(wrong.err);
  CHECK(wrong.code == 2);
  CHECK_HAS(wrong.err, "password");
  CHECK_FALSE(testing::has(wrong.err, "guess"));
  const Finished none = run("unix://" + socket, "none");
  CHECK(none.code == 2);
  CHECK_HAS(none.err, "password");
  const Finished right = run("unix://:secret@" + socket, "right");
  INFO(right.err);
  CHECK(right.code == 0);
  const fs::perms shown = fs::status(box.path() / "results/right/experiment.json").permissions();
  CHECK((shown & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
}

TEST_CASE("a server that may lose entries is refused unless told so") {
  Sandbox box;
  const std::string socket = (box.path() / "tmp/r").string();
  Running server = box.start({"redis-server", "--port", "0", "--unixsocket", socket, "--appendonly",
                              "no", "--save", "", "--dir", box.path()});
  REQUIRE(Sandbox::eventually([&] { return fs::exists(socket); }));
  box.write("sweep.yaml", yaml({.num_samples = 1}));
  const Finished run =
      box.tune({"run", "sweep.yaml", "--name", "s", "--store", "unix://" + socket});
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "append-only");
  CHECK_HAS(run.err, "store_unsafe");
  const Finished told = box.tune({"run", "sweep.yaml", "--name", "t", "--store", "unix://" + socket,
                                  "--set", "store_unsafe=true"});
  INFO(told.err);
  CHECK(told.code == 0);
}

}  // namespace
}  // namespace tune
