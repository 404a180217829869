// Short sweeps of searchers and schedulers that other tests here leave alone, each killed on its
// way: they go on, and come to their end.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"
#include "tune/results/analysis.h"

namespace tune {
namespace {

bool has_results_of(const Sandbox& box, std::size_t trials) {
  const auto folders = trial_folders(box, "results/s");
  const auto has_result = [](const std::filesystem::path& folder) {
    std::error_code error;
    return std::filesystem::file_size(folder / "result.json", error) > 0 && !error;
  };
  return static_cast<std::size_t>(std::ranges::count_if(folders, has_result)) >= trials;
}

TEST_CASE("a killed sweep of each kind goes on and ends, and its journal is confirmed") {
  struct Case {
    std::string what;
    std::string rest;
    const char* line;  // of events.jsonl, that there must be
  };
  const std::string ends = "stop: {training_iteration: 9}\n";
  const std::string several =
      "objectives: [{metric: mean_accuracy, mode: max}, {metric: mean_loss, mode: min}]\n";
  const std::vector<Case> cases = {
      {"cma_es", ends + "searcher: {cma_es: {population: 4}}\n", "\"origin\":\"model\""},
      {"halton", ends + "searcher: halton\n", "\"origin\":\"random\""},
      {"nsga2", ends + several + "searcher: {nsga2: {population: 4}}\n", "\"origin\":\"model\""},
      {"hyperband", "scheduler: {hyperband: {max_t: 9}}\n", "\"verdict\":\"pause\""},
      {"median", ends + "scheduler: {median_stopping: {min_samples_required: 2}}\n",
       "\"verdict\":\"stop\""},
      {"pb2",
       ends + "scheduler: {pb2: {perturbation_interval: 2, quantile_fraction: 0.5, "
              "hyperparam_bounds: {lr: {loguniform: [1e-3, 1.0]}}}}\n",
       "\"event\":\"replaced\""},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    Sandbox box;
    SweepText text{.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 20}", .num_samples = 12};
    text.rest = each.rest + "checkpoint: {frequency: 1}\n";
    std::string sweep = yaml(text);
    const std::string metric = "metric: mean_accuracy\n";
    if (each.rest.find("objectives") != each.rest.npos) {
      sweep.replace(sweep.find(metric), metric.size(), "");
    }
    box.write("sweep.yaml", sweep);
    {
      Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3"});
      REQUIRE(Sandbox::eventually([&] { return has_results_of(box, 3); }));
      run.signal(SIGKILL);
      run.wait();
    }
    const Finished resumed = box.tune({"resume", "results/s"});
    INFO(resumed.err);
    REQUIRE(resumed.code == 0);
    const Analysis analysis = Analysis::load(box.path() / "results/s");
    CHECK(analysis.trials().size() == 12);
    for (const TrialSummary& trial : analysis.trials()) {
      CHECK(trial.status == TrialStatus::kTerminated);
    }
    CHECK_HAS(box.read("results/s/events.jsonl"), each.line);
    const Finished replayed = box.tune({"replay", "results/s"});
    INFO(replayed.out << replayed.err);
    CHECK(replayed.code == 0);
    check_nothing_left(box, "results/s");
  }
}

}  // namespace
}  // namespace tune
