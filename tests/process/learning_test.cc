// Whole sweeps of a searcher that learns: its proposals are made beside the driver's loop, and
// stand in the journal.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

// The values of `key` in the lines of events.jsonl about proposals, in order.
std::vector<std::string> proposed(const Sandbox& box, const char* key) {
  std::vector<std::string> values;
  for (const std::string& line : lines_of(box.read("results/s/events.jsonl"))) {
    const Value event = parse_json(line, "a line of events.jsonl");
    if (event.get<std::string>("event") != "proposed") continue;
    values.push_back(event.contains(key) ? event.at(key).dump() : "");
  }
  return values;
}

std::string text_of(const std::string& word) {
  return '"' + word + '"';
}

TEST_CASE("a sweep with gp ends by itself, and every proposal has its line") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 12,
                                .rest = "stop: {training_iteration: 2}\n"
                                        "searcher: {gp: {random_share: 0}}\n"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  check_complete(box, "results/s", 12, 2);
  const std::vector<std::string> origins = proposed(box, "origin");
  REQUIRE(origins.size() == 12);
  CHECK(origins.front() == text_of("start_up"));
  CHECK(origins.back() == text_of("model"));
  // Five ended before there was a model, and up to two more ran or were in stock.
  CHECK(std::ranges::count(origins, text_of("start_up")) >= 5);
  CHECK(std::ranges::count(origins, text_of("model")) >= 3);
  CHECK(proposed(box, "mean").back() != "");
  CHECK(box.is_quiet());
}

TEST_CASE("a killed driver's proposals are read again, none is lost or made twice") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 20}",
                                .num_samples = 12,
                                .rest = "stop: {training_iteration: 3}\nsearcher: gp\n"}));
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return proposed(box, "trial").size() >= 7; }));
    run.signal(SIGKILL);
    run.wait();
  }
  CHECK(box.is_quiet());
  const std::vector<std::string> before = proposed(box, "trial");
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", 12, 3);
  const std::vector<std::string> trials = proposed(box, "trial");
  CHECK(trials.size() == 12);
  CHECK(std::set<std::string>(trials.begin(), trials.end()).size() == 12);
}

TEST_CASE("validate prints what gp begins with, and says so") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.rest = "stop: {training_iteration: 2}\nsearcher: gp\n"}));
  const Finished told = box.tune({"validate", "sweep.yaml", "--configs", "3"});
  CHECK(told.code == 0);
  CHECK(lines_of(told.out).size() == 3);
  CHECK_HAS(told.err,
            "searcher gp: such configurations come first; later ones follow from results");
  CHECK(box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  const std::vector<std::string> trials = proposed(box, "trial");
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string trial = parse_json(trials.at(i), "a name").string();
    const std::string params = box.read("results/s/" + trial + "/params.json");
    CHECK(parse_json(params, "params.json").dump() == lines_of(told.out)[i]);
  }
  const Finished summed = box.tune({"validate", "sweep.yaml"});
  CHECK_HAS(summed.out, ", searcher gp");
  // Of a sequence all configurations are as printed.
  box.write("even.yaml", yaml({.rest = "stop: {training_iteration: 2}\nsearcher: halton\n"}));
  const Finished even = box.tune({"validate", "even.yaml", "--configs", "3"});
  CHECK(lines_of(even.out).size() == 3);
  CHECK(even.err.find("follow from results") == std::string::npos);
  box.write("grid.yaml", yaml({.config = "{lr: {grid_search: [0.1, 0.2]}}",
                               .rest = "stop: {training_iteration: 2}\nsearcher: gp\n"}));
  const Finished refused = box.tune({"validate", "grid.yaml"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "'lr' is a grid_search");
}

// The text of a sweep that names no searcher.
std::string unnamed(SweepText text) {
  text.rest += "# searcher: none\n";
  return yaml(text);
}

TEST_CASE("a sweep that names no searcher gets one, says which, and is resumed with it") {
  Sandbox box;
  const std::string stop = "stop: {training_iteration: 2}\n";
  box.write("sweep.yaml", unnamed({.num_samples = 12, .rest = stop}));
  const Finished validated = box.tune({"validate", "sweep.yaml"});
  CHECK_HAS(validated.out,
            ", searcher auto (gp, as 1 parameter is few enough for a model of mean_accuracy)");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(run.code == 0);
  CHECK_HAS(run.err, "searcher: gp, as 1 parameter is few enough for a model of mean_accuracy\n");
  CHECK(proposed(box, "origin").size() == 12);
  CHECK(parse_json(box.read("results/s/experiment.json"), "it").contains("searcher/auto"));

  box.write("few.yaml", unnamed({.num_samples = 3, .rest = stop}));
  const Finished few = box.tune({"run", "few.yaml", "--name", "few", "--cpus", "2"});
  REQUIRE(few.code == 0);
  CHECK_HAS(few.err, "searcher: random search, as 3 trials are too few to learn from\n");
  const std::string stored = box.read("results/few/experiment.json");
  CHECK(parse_json(stored, "it").contains("searcher/basic_variant"));
  box.write("quiet.yaml", unnamed({.num_samples = 3, .rest = stop + "quiet: true\n"}));
  const Finished quiet = box.tune({"run", "quiet.yaml", "--name", "quiet", "--cpus", "2"});
  CHECK(quiet.err == "");
}

}  // namespace
}  // namespace tune
