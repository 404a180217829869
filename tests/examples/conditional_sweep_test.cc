// config/conditional.yaml as a person runs it.
#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "process/sandbox.h"
#include "tune/results/analysis.h"

namespace tune {
namespace {

// The sweep with the plugin of this build. Configurations are the same each time under a searcher
// that does not learn.
std::string conditional_sweep(const std::string& searcher = "random") {
  std::ifstream file(TUNE_SOURCE_DIR "/config/conditional.yaml");
  std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string plugin = "../build/examples/libtwo_moons.so";
  const std::size_t at = text.find(plugin);
  REQUIRE(at != std::string::npos);
  return text.replace(at, plugin.size(), TUNE_BINARY_DIR "/examples/libtwo_moons.so") +
         "searcher: " + searcher + "\n";
}

// The configurations as they are printed beforehand.
std::vector<std::string> listed_configs(const Sandbox& box) {
  const Finished listed = box.tune({"validate", "sweep.yaml", "--configs", "12"});
  INFO(listed.err);
  REQUIRE(listed.code == 0);
  return lines_of(listed.out);
}

void check_configs(const Analysis& analysis, const std::vector<std::string>& expected) {
  REQUIRE(analysis.trials().size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(analysis.trials()[i].config().dump() == expected[i]);
  }
}

TEST_CASE("a sweep with conditions and constraints runs, and its table has their columns") {
  Sandbox box;
  box.write("sweep.yaml", conditional_sweep());
  const Finished run = box.tune({"run", "sweep.yaml", "--num-samples", "12", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto analysis = Analysis::load(box.path() / "results/latest");
  check_configs(analysis, listed_configs(box));
  int adam = 0;
  for (const auto& trial : analysis.trials()) {
    const Config config = trial.config();
    CAPTURE(config.dump());
    const bool is_adam = config.get<std::string>("optimiser/kind") == "adam";
    adam += is_adam;
    CHECK(config.contains("optimiser/momentum") == !is_adam);
    CHECK(config.contains("optimiser/beta1") == is_adam);
    if (is_adam) {
      CHECK(config.get<double>("optimiser/beta1") < config.get<double>("optimiser/beta2"));
    }
    CHECK(config.get<int>("schedule/warmup") < config.get<int>("schedule/decay"));
  }
  CHECK(adam > 0);
  CHECK(adam < 12);
  CHECK(analysis.best_result().get<double>("mean_accuracy") > 0.9);
  const std::string csv = box.read("results/latest/results.csv");
  const std::string header = csv.substr(0, csv.find('\n'));
  CHECK_HAS(header, "config/optimiser/momentum");
  CHECK_HAS(header, "config/optimiser/beta1");
}

TEST_CASE("auto searches a space with conditions and constraints by gp, and says so") {
  Sandbox box;
  box.write("sweep.yaml", conditional_sweep("auto"));
  const Finished run = box.tune({"run", "sweep.yaml", "--num-samples", "16", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_HAS(run.err, "searcher: gp, as 9 parameters are few enough for a model of mean_accuracy");
  const auto analysis = Analysis::load(box.path() / "results/latest");
  REQUIRE(analysis.trials().size() == 16);
  for (const auto& trial : analysis.trials()) {
    const Config config = trial.config();
    CAPTURE(config.dump());
    const bool is_adam = config.get<std::string>("optimiser/kind") == "adam";
    CHECK(config.contains("optimiser/momentum") == !is_adam);
    CHECK(config.contains("optimiser/beta1") == is_adam);
    if (is_adam) {
      CHECK(config.get<double>("optimiser/beta1") < config.get<double>("optimiser/beta2"));
    }
    CHECK(config.get<int>("schedule/warmup") < config.get<int>("schedule/decay"));
  }
  // The last proposals are the model's.
  const Finished why = box.tune({"explain", "results/latest", "15"});
  INFO(why.out << why.err);
  CHECK(why.code == 0);
  CHECK_HAS(box.read("results/latest/events.jsonl"), "\"origin\":\"model\"");
}

TEST_CASE("a killed sweep with conditions and constraints goes on with the same configurations") {
  Sandbox box;
  box.write("sweep.yaml", conditional_sweep());
  Running killed = box.start_tune({"run", "sweep.yaml", "--num-samples", "12", "--cpus", "1",
                                   "--set", "scheduler=fifo", "--set", "stop/training_iteration=40",
                                   "--set", "checkpoint/frequency=1"});
  REQUIRE(Sandbox::eventually([&] {
    return box.read("results/latest/events.jsonl").find("attempt_started") != std::string::npos;
  }));
  killed.signal(SIGKILL);
  killed.wait();
  const Finished resumed = box.tune({"resume", "results/latest"});
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
  check_configs(Analysis::load(box.path() / "results/latest"), listed_configs(box));
}

}  // namespace
}  // namespace tune
