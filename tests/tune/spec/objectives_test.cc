// Several objectives and constraints as they are written, checked, stored and read again.
#include "tune/spec/objectives.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/refusal.h"
#include "schedulers/median_stopping.h"
#include "tune/search/pbt/pbt.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/options_value.h"

namespace tune {
namespace {

RunOptions two_objectives() {
  RunOptions options;
  options.config = {{"lr", loguniform(1e-3, 1.0)}};
  options.objectives = {{"loss", Mode::kMin}, {"accuracy"}};
  options.constraints = {{.metric = "latency_ms", .max = 20}};
  options.stop = {{"training_iteration", 3}};
  options.seed = 7;
  return options;
}

struct MadeSpec {
  ExperimentSpec spec;
  std::string told;
};

MadeSpec make_spec(RunOptions options) {
  std::vector<Complaint> complaints;
  MadeSpec made{make_spec(std::move(options), "Mnist", false, complaints), {}};
  for (const Complaint& one : complaints) made.told += one.path + ": " + one.message + "\n";
  return made;
}

// The options of a YAML sweep, but for its syntax.
RunOptions read(const Value& sweep, std::string& told) {
  std::vector<Complaint> complaints;
  RunOptions options;
  OptionReader reader(sweep, "", complaints);
  read_options(reader, options);
  reader.finish();
  for (const Complaint& one : complaints) told += one.path + ": " + one.message + "\n";
  return options;
}

TEST_CASE("several objectives take the place of the metric, whatever asks for the objective") {
  for (const SchedulerSpec& scheduler :
       {fifo(), asha({.max_t = 9}), asha({.max_t = 9, .type = AshaType::kPromote}),
        median_stopping()}) {
    RunOptions options = two_objectives();
    options.scheduler = scheduler;
    const MadeSpec made = make_spec(options);
    CHECK(made.told == "");
    CHECK(made.spec.options.metric == "");
    CHECK_FALSE(made.spec.options.mode.has_value());
    const Objective objective = objective_of(made.spec);
    CHECK(objective.seed == 7);
    REQUIRE(objective.goals.size() == 2);
    CHECK(objective.goals[0].mode == Mode::kMin);
    REQUIRE(objective.constraints.size() == 1);
    CHECK(objective.constraints[0].max == 20);
    CHECK_FALSE(objective.constraints[0].min.has_value());
  }
}

TEST_CASE("one objective alone is the metric") {
  RunOptions options = two_objectives();
  options.objectives = {{"loss", Mode::kMin}};
  const MadeSpec made = make_spec(options);
  CHECK(made.told == "");
  CHECK(made.spec.options.metric == "loss");
  CHECK(made.spec.options.mode == Mode::kMin);
  CHECK(made.spec.options.objectives.empty());
  CHECK(objective_of(made.spec).constraints.size() == 1);
}

TEST_CASE("experiment.json has objectives and constraints, and brings them back") {
  const ExperimentSpec spec = make_spec(two_objectives()).spec;
  const Value stored = to_value(spec);
  CHECK(stored.at("objectives").dump() ==
        R"([{"metric":"loss","mode":"min"},{"metric":"accuracy","mode":"max"}])");
  CHECK(stored.at("constraints").dump() == R"([{"metric":"latency_ms","max":20.0}])");
  const ExperimentSpec back = spec_from_value(stored);
  CHECK(to_value(back) == stored);
  CHECK(objective_of(back).goals[1].metric == "accuracy");
  // Those of versions that had neither.
  Value old = stored;
  old.erase("objectives");
  old.erase("constraints");
  old.set("metric", "loss");
  CHECK(spec_from_value(old).options.objectives.empty());
}

TEST_CASE("what is wrong with objectives and constraints is told with its place") {
  const double inf = std::numeric_limits<double>::infinity();
  struct Case {
    std::function<void(RunOptions&)> change;
    const char* told;
  };
  const Case cases[] = {
      {[](RunOptions& o) { o.metric = "loss"; },
       "objectives: both metric ('loss') and objectives are given: keep one"},
      {[](RunOptions& o) { o.mode = Mode::kMin; },
       "mode: each of the objectives has a mode of its own"},
      {[](RunOptions& o) { o.objectives.push_back({"loss"}); },
       "objectives/2/metric: 'loss' is there twice"},
      {[](RunOptions& o) { o.objectives[0].metric = ""; }, "objectives/0/metric: is missing"},
      {[](RunOptions& o) { o.objectives[0].metric = "/loss"; },
       "objectives/0/metric: '/loss' is not a key path"},
      {[](RunOptions& o) { o.constraints.push_back({.metric = "latency_ms", .min = 1}); },
       "constraints/1/metric: 'latency_ms' is there twice"},
      {[](RunOptions& o) { o.constraints[0].max.reset(); },
       "constraints/0: no bound is given: write min or max"},
      {[inf](RunOptions& o) { o.constraints[0].max = inf; },
       "constraints/0/max: inf is not a bound"},
      {[](RunOptions& o) { o.constraints[0].min = 30; }, "constraints/0: min 30 is above max 20"},
      {[](RunOptions& o) { o.objectives.clear(); },
       "constraints: there is nothing to make good under them"},
      {[](RunOptions& o) { o.scheduler = asha({.max_t = 9, .metric = "loss"}); },
       "scheduler: scheduler asha: it is given a metric or a mode"},
      {[](RunOptions& o) {
         o.scheduler = pbt({.hyperparam_mutations = {{"lr", loguniform(1e-3, 1.0)}}});
       },
       "scheduler: scheduler pbt compares trials by one metric alone, and here it would be by loss "
       "(min), accuracy (max); latency_ms <= 20"},
      {[](RunOptions& o) { o.scheduler = median_stopping({.rule = MedianRule::kBest}); },
       "scheduler: scheduler median_stopping compares trials by one metric alone"},
      {[](RunOptions& o) { o.searcher = cma_es(); },
       "searcher: searcher cma_es learns from one metric alone"},
      {[](RunOptions& o) {
         o.searcher = gp();
         o.warm_start = {"results/a"};
       },
       "warm_start: it reads the values of one metric"},
      {[](RunOptions& o) {
         o.stop = {{"loss", 0.5}};
       },
       "stop/loss: a bare number stops at or above 0.5, but the mode of loss is min"},
  };
  for (const Case& one : cases) {
    RunOptions options = two_objectives();
    one.change(options);
    const std::string told = make_spec(options).told;
    CAPTURE(one.told);
    CAPTURE(told);
    CHECK(told.find(one.told) != std::string::npos);
  }
}

TEST_CASE("objectives and constraints are read as they are written in a sweep") {
  std::string told;
  const RunOptions options =
      read(Value{{"objectives", list({Value{{"metric", "loss"}, {"mode", "min"}},
                                      Value{{"metric", "test/accuracy"}}})},
                 {"constraints", list({Value{{"metric", "ms"}, {"min", 1}, {"max", 2.5}}})}},
           told);
  CHECK(told == "");
  REQUIRE(options.objectives.size() == 2);
  CHECK(options.objectives[0].mode == Mode::kMin);
  CHECK(options.objectives[1].metric == "test/accuracy");
  CHECK(options.objectives[1].mode == Mode::kMax);
  REQUIRE(options.constraints.size() == 1);
  CHECK(options.constraints[0].min == 1);
  CHECK(options.constraints[0].max == 2.5);
}

TEST_CASE("slips of the pen in objectives and constraints are told all at once") {
  std::string told;
  read(Value{{"objectives", list({Value{{"metric", "loss"}, {"mod", "min"}},
                                  Value{{"metric", 3}, {"mode", "least"}}, "loss"})},
             {"constraints", Value{{"metric", "ms"}, {"max", 20}}}},
       told);
  for (const char* part :
       {"objectives/0/mod: unknown key 'mod' (did you mean 'mode'?)",
        "objectives/1/metric: expected a text, found 3",
        "objectives/1/mode: expected max or min, found 'least'",
        "objectives/2: expected keys with values, found the text 'loss'",
        "constraints: expected a list, as in [{metric: latency_ms, max: 20}], found a map"}) {
    CAPTURE(part);
    CAPTURE(told);
    CHECK(told.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace tune
