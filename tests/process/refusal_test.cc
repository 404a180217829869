// Bad input and bad days: a clear error with the values and a next step, nothing begun or lost.
#include <doctest/doctest.h>

#include <unistd.h>

#include "core/refusal.h"
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
  CHECK(box.is_quiet());
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
      {folder + "libother_protocol.so", "Curve", {"protocol 999"}},
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
    CHECK_FALSE(fs::exists(box.path() / "results/s"));  // the name is free once it is mended
    CHECK(box.is_quiet());
  }
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
  const Finished run = box.tune({"run", "sweep.yaml", "--storage", "file", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "file");
  CHECK_HAS(run.err, "--storage");
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
