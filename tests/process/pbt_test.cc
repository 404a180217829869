// Population based training with real Redis, agent and workers: what a trial's results come of,
// also when processes are killed on the way.
#include <doctest/doctest.h>

#include <signal.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"
#include "tune/results/analysis.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPbtSteps = 12;

std::string population(const std::string& more = "", int trials = 6) {
  return yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 20}",
               .num_samples = trials,
               .rest = "stop: {training_iteration: " + std::to_string(kPbtSteps) +
                       "}\nscheduler:\n  pbt:\n    perturbation_interval: 2\n"
                       "    quantile_fraction: 0.5\n    hyperparam_mutations: {lr: {loguniform: "
                       "[1e-3, 1.0]}}\n" +
                       more});
}

// The sweep may run: a line that is being written is not one yet.
std::vector<Value> replacements(const Sandbox& box) {
  std::vector<Value> all;
  const std::string text = box.read("results/s/events.jsonl");
  for (const std::string& line : lines_of(text.substr(0, text.rfind('\n') + 1))) {
    Value event = parse_json(line, "events.jsonl");
    if (event.get_or("event", "") == "replaced") all.push_back(std::move(event));
  }
  return all;
}

// The result of Curve (trainables/synthetic/curve.cc) after so many steps of its model.
double curve(double lr, std::uint64_t steps) {
  const double decades = std::log10(lr / 0.1);
  const double height = 0.98 * std::exp(-0.35 * decades * decades) * (1 - 0.3 / std::sqrt(64.0));
  return height * (1 - std::exp(-static_cast<double>(steps) / (2.0 + 20.0 / (1.0 + 50.0 * lr))));
}

// Every result since the trial's last replacement is what its schedule says, and each trial has
// all.
void check_results(const Sandbox& box, std::size_t trials) {
  const Analysis analysis = Analysis::load(box.path() / "results/s");
  REQUIRE(analysis.trials().size() == trials);
  for (const TrialSummary& trial : analysis.trials()) {
    CAPTURE(trial.id);
    CHECK(trial.status == TrialStatus::kTerminated);
    const std::vector<Result> results = trial.results();
    REQUIRE(results.size() == kPbtSteps);
    const std::vector<ScheduleEntry> schedule = trial.schedule();
    const ScheduleEntry& newest = schedule.back();
    CHECK(newest.trial == trial.id);
    CHECK(newest.config == trial.config());
    for (std::uint64_t i = newest.trial_iteration + 1; i <= kPbtSteps; ++i) {
      const std::uint64_t steps = newest.iteration + i - newest.trial_iteration;
      CHECK(results[i - 1].get<double>("mean_accuracy") ==
            doctest::Approx(curve(newest.config.get<double>("lr"), steps)));
      CHECK(results[i - 1].get<std::uint64_t>("training_iteration") == i);
    }
  }
}

// Each once: a trial is replaced at one iteration at most once.
void check_replacements(const Sandbox& box) {
  const std::vector<Value> all = replacements(box);
  CHECK(all.size() >= 3);
  std::set<std::pair<std::string, std::int64_t>> seen;
  for (const Value& one : all) {
    const auto trial = one.get<std::string>("trial");
    CHECK(seen.insert({trial, one.get<std::int64_t>("iteration")}).second);
    CHECK(one.get<std::string>("donor") != trial);
    CHECK_HAS(one.get<std::string>("reason"), " is among the worst ");
  }
}

TEST_CASE("under pbt weak trials go on from the checkpoints of strong ones, with other values") {
  Sandbox box;
  box.write("sweep.yaml", population());
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "6"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  check_replacements(box);
  check_results(box, 6);
  CHECK_HAS(run.err, "PopulationBasedTraining: ");
  check_nothing_left(box, "results/s");

  // The schedule of a replaced trial is a sweep that can be run.
  const std::string trial = replacements(box).back().get<std::string>("trial");
  const Finished schedule = box.tune({"schedule", "results/s", trial});
  REQUIRE(schedule.code == 0);
  CHECK_HAS(schedule.out, "pbt_replay:");
  box.write("replay.yaml", std::string("plugin: ") + TUNE_SYNTHETIC_PLUGIN +
                               "\ntrainable: Curve\nmetric: mean_accuracy\n"
                               "stop: {training_iteration: 12}\n" +
                               schedule.out);
  const Finished replay = box.tune({"run", "replay.yaml", "--name", "replay", "--quiet"});
  INFO(replay.err);
  REQUIRE(replay.code == 0);
  const Analysis played = Analysis::load(box.path() / "results/replay");
  REQUIRE(played.trials().size() == 1);
  const auto of = Analysis::load(box.path() / "results/s").trials();
  for (const TrialSummary& one : of) {
    if (one.id != trial) continue;
    const auto wanted = one.schedule(), found = played.trials()[0].schedule();
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].config == wanted[i].config);
      CHECK(found[i].iteration == wanted[i].iteration);
    }
  }
}

TEST_CASE("a pbt sweep that is killed and resumed has each replacement once, and whole") {
  Sandbox box;
  box.write("sweep.yaml", population());
  for (const std::size_t before : {1u, 3u}) {
    Running run = before == 1 ? box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "6"})
                              : box.start_tune({"resume", "results/s"});
    REQUIRE(Sandbox::eventually([&] {
      return fs::exists(box.path() / "results/s/events.jsonl") &&
             replacements(box).size() >= before;
    }));
    run.signal(SIGKILL);
    run.wait();
  }
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
  check_replacements(box);
  check_results(box, 6);
  check_nothing_left(box, "results/s");
}

TEST_CASE("with fewer places than trials, and all waiting for each other, none is left behind") {
  Sandbox box;
  box.write("sweep.yaml", population("    synch: true\n"));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  check_replacements(box);
  check_results(box, 6);

  Sandbox in_turn;
  in_turn.write("sweep.yaml", population());
  const Finished other = in_turn.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(other.err);
  REQUIRE(other.code == 0);
  check_replacements(in_turn);
  check_results(in_turn, 6);
}

TEST_CASE("a pbt sweep that cannot work is refused before it begins") {
  Sandbox box;
  const auto refused = [&](const std::string& text, const std::string& why) {
    box.write("sweep.yaml", text);
    const Finished run = box.tune({"validate", "sweep.yaml"});
    CHECK(run.code == 2);
    CHECK_HAS(run.err, why);
  };
  std::string text = population();
  text.replace(text.find("{lr: {loguniform: [1e-3, 1.0]}}\n"), 32,
               "{learning_rate: {loguniform: [1e-3, 1.0]}}\n");
  refused(text, "learning_rate is not in config");
  refused(population("    quantile_fracion: 1\n"), "did you mean 'quantile_fraction'?");
  refused(population("num_samples: -1\n", 6), "num_samples");
  box.write("sweep.yaml",
            yaml({.trainable = "Forgetful",
                  .rest = "stop: {training_iteration: 3}\nscheduler: {pbt: "
                          "{hyperparam_mutations: {lr: [0.1, 0.2]}}}\n",
                  .plugin = std::string(TUNE_BINARY_DIR) + "/tests/libforgetful.so"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(run.code == 2);
  CHECK_HAS(run.err,
            "scheduler: it lets trials go on from the checkpoints of others, but Forgetful "
            "has no save and load: write them, or choose another");
}

}  // namespace
}  // namespace tune
