// config/objectives.yaml and config/nsga2.yaml as a person runs them.
#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "process/sandbox.h"
#include "tune/results/analysis.h"

namespace tune {
namespace {

// The sweep with the plugin of this build.
std::string objectives_sweep(const std::string& name = "objectives") {
  std::ifstream file(TUNE_SOURCE_DIR "/config/" + name + ".yaml");
  std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string plugin = "../build/examples/libtwo_moons.so";
  const std::size_t at = text.find(plugin);
  REQUIRE(at != std::string::npos);
  return text.replace(at, plugin.size(), TUNE_BINARY_DIR "/examples/libtwo_moons.so");
}

// No trial of the front is worse than another one by accuracy and by size, and all are as accurate.
void check_front(const Analysis& analysis, double least_accuracy = 0.8) {
  const auto front = analysis.pareto();
  REQUIRE(front.size() >= 2);
  double accuracy = 1.1;
  double weights = 1e9;
  for (const TrialSummary& trial : front) {
    const Result last = trial.last_result();
    CHECK(last.get<double>("mean_accuracy") <= accuracy);
    CHECK(last.get<double>("num_weights") <= weights);
    CHECK(last.get<double>("mean_accuracy") >= least_accuracy);
    accuracy = last.get<double>("mean_accuracy");
    weights = last.get<double>("num_weights");
  }
}

TEST_CASE("a sweep with two objectives and a constraint ends with a front") {
  Sandbox box;
  box.write("sweep.yaml", objectives_sweep());
  const Finished run = box.tune({"run", "sweep.yaml", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto analysis = Analysis::load(box.path() / "results/latest");
  check_front(analysis);
  const auto front = analysis.pareto();

  // The configurations of the front are what a script reads.
  const auto lines = lines_of(run.out);
  REQUIRE(lines.size() == front.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(lines[i] == front[i].config().dump());
  }
  CHECK_HAS(run.err, "Pareto front (*): ");
  CHECK_HAS(run.err, " of which none is better than another: tune best ");
  CHECK_HAS(box.read("results/latest/events.jsonl"), "by non-dominated rank, not among the best");

  const Finished best = box.tune({"best", "results/latest"});
  const auto rows = lines_of(best.out);
  REQUIRE(rows.size() == front.size() + 1);
  CHECK_HAS(rows[0], "trial_id  ");
  CHECK_HAS(rows[0], "mean_accuracy  num_weights  config/lr");
  CHECK(rows[1].starts_with(front[0].id));
  const auto objects = lines_of(box.tune({"best", "results/latest", "--json"}).out);
  REQUIRE(objects.size() == front.size());
  CHECK(parse_json(objects[0], "best").get<std::string>("trial_id") == front[0].id);
  const Finished checkpoint = box.tune({"best", "results/latest", "--checkpoint"});
  CHECK(checkpoint.code == 2);
  CHECK_HAS(checkpoint.err, "there are several objectives");
  const Finished no_metric = box.tune({"best", "results/latest", "--mode", "min"});
  CHECK(no_metric.code == 2);
  CHECK_HAS(no_metric.err, "name one of them by --metric");
  const Finished smallest =
      box.tune({"best", "results/latest", "--metric", "num_weights", "--mode", "min", "--json"});
  CHECK(parse_json(smallest.out, "best").get<std::string>("trial_id") ==
        analysis.best_trial("num_weights", Mode::kMin).id);

  const auto table = lines_of(box.tune({"results", "results/latest"}).out);
  CHECK_HAS(table[0], "training_iteration  pareto  mean_accuracy  num_weights");
  std::size_t marked = 0;
  for (const std::string& row : table) marked += row.find(" * ") != std::string::npos ? 1 : 0;
  CHECK(marked == front.size());
}

TEST_CASE("a sweep with NSGA-II has children once there is a population, and ends with a front") {
  Sandbox box;
  box.write("sweep.yaml", objectives_sweep("nsga2"));
  const Finished run = box.tune({"run", "sweep.yaml", "--cpus", "2", "--num-samples", "40"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto analysis = Analysis::load(box.path() / "results/latest");
  CHECK(analysis.trials().size() == 40);
  check_front(analysis, 0);
  CHECK(lines_of(run.out).size() == analysis.pareto().size());
  // 20 results were known then, and each child names its parents.
  const Finished why = box.tune({"explain", "results/latest", "39"});
  INFO(why.err);
  CHECK_HAS(why.out, "proposed: a child, by nsga2, of the two named below");
}

TEST_CASE("a killed sweep with several objectives goes on with them") {
  Sandbox box;
  std::string sweep = objectives_sweep();
  const std::string rule = "rule: top";
  REQUIRE(sweep.find(rule) != std::string::npos);
  box.write("sweep.yaml", sweep.replace(sweep.find(rule), rule.size(), "type: promote"));
  Running killed = box.start_tune({"run", "sweep.yaml", "--cpus", "1", "--set", "num_samples=12"});
  REQUIRE(Sandbox::eventually([&] {
    const std::string events = box.read("results/latest/events.jsonl");
    return events.find("\"origin\":\"model\"") != std::string::npos;
  }));
  killed.signal(SIGKILL);
  killed.wait();
  const Finished resumed = box.tune({"resume", "results/latest"});
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
  const auto analysis = Analysis::load(box.path() / "results/latest");
  CHECK(analysis.trials().size() == 12);
  REQUIRE(analysis.objectives().size() == 2);
  CHECK(analysis.constraints().size() == 1);
  CHECK_FALSE(analysis.pareto().empty());
  CHECK(lines_of(resumed.out).size() == analysis.pareto().size());
}

}  // namespace
}  // namespace tune
