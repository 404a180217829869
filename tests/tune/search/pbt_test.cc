#include "tune/search/pbt/pbt.h"

#include <cmath>
#include <memory>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/json.h"
#include "core/refusal.h"
#include "schedulers/pbt_replay.h"
#include "schedulers/pbt_scheduler.h"
#include "tune/spec/scheduler_kinds.h"
#include "tune/testing/reports.h"
#include "tune/testing/scheduler_conformance.h"

using namespace tune;
using namespace tune::testing;

namespace {

PbtOptions pbt_every(double interval) {
  PbtOptions options;
  options.perturbation_interval = interval;
  options.hyperparam_mutations = {{"x", uniform(0, 100)}};
  return options;
}

// Trials 0, 1 ... with x = 1, 2 ...
struct PbtSweep {
  PbtSweep(const PbtOptions& options, std::uint32_t trials, Mode mode = Mode::kMax)
      : scheduler(pbt(options).make()) {
    scheduler->configure({"m", mode, 7});
    for (std::uint32_t trial = 0; trial < trials; ++trial) {
      scheduler->take_config({trial}, pack(Config{{"x", trial + 1.0}}));
      scheduler->add_trial({trial});
    }
  }
  Decision report(std::uint32_t trial, std::uint64_t iteration, std::optional<double> value) {
    return scheduler->result({trial}, testing::report(trial, iteration, value));
  }
  // Its result at the time it is judged at, and its checkpoint.
  Decision come(std::uint32_t trial, std::uint64_t iteration, double value) {
    Decision decision = report(trial, iteration, value);
    if (decision.save || decision.kind == Decision::Kind::kPause) {
      scheduler->checkpoint_saved({trial}, iteration);
    }
    return decision;
  }
  std::unique_ptr<TrialScheduler> scheduler;
};

std::string pbt_refusal(const PbtOptions& options) {
  try {
    pbt(options);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    return error.what();
  }
}

}  // namespace

TEST_CASE("pbt keeps the contract") {
  check_scheduler(pbt(pbt_every(2)));
  PbtOptions half = pbt_every(1);
  half.quantile_fraction = 0.5;
  half.burn_in_period = 3;
  check_scheduler(pbt(half));
  PbtOptions all_together = pbt_every(2);
  all_together.synch = true;
  check_scheduler(pbt(all_together));
  PbtOptions strict = pbt_every(2);
  strict.require_attrs = true;
  check_scheduler(pbt(strict));
}

TEST_CASE("pbt_replay keeps the contract") {
  check_scheduler(pbt_replay({{{0, {{"x", 1}}}, {3, {{"x", 2}}}, {4, {{"x", 3}}}}}));
}

TEST_CASE("one of the worst goes on from one of the best that was saved, with its values mutated") {
  PbtSweep sweep(pbt_every(4), 4);
  // ceil(n / 4) = 1 at each end. Alone none is ranked; of two the better one is saved.
  CHECK_FALSE(sweep.come(0, 4, 0.5).save);
  CHECK(sweep.come(1, 4, 0.9).save);
  CHECK_FALSE(sweep.come(2, 4, 0.7).save);
  const Decision decision = sweep.come(3, 4, 0.1);
  REQUIRE(decision.kind == Decision::Kind::kReplace);
  CHECK(decision.replacement->donor == TrialNumber{1});
  CHECK(decision.until == Milestone{"training_iteration", 8});
  const double x = decision.replacement->config.get<double>("x");
  CHECK(x != 2.0);  // of trial 1: multiplied, or drawn anew
  CHECK(
      decision.reason.starts_with("0.1 is among the worst 1 of 4 at iteration 4: it goes on from "
                                  "trial 1 with 0.9; x 2.0 "));
  CHECK(sweep.scheduler->status_lines() ==
        std::vector<std::string>{"PopulationBasedTraining: 1 checkpoints, 1 perturbs"});
}

TEST_CASE("the replaced trial is judged next an interval later, by its own count") {
  PbtSweep sweep(pbt_every(4), 2);
  sweep.come(0, 4, 0.9);
  sweep.come(1, 5, 0.1);  // its report came late; trial 0 was alone and has no checkpoint
  CHECK(sweep.come(0, 8, 0.9).save);
  CHECK(sweep.report(1, 8, 0.1).kind == Decision::Kind::kContinue);  // 5 + 4 = 9
  CHECK(sweep.report(1, 9, 0.1).kind == Decision::Kind::kReplace);
}

TEST_CASE("a donor has the checkpoint of its last judged result") {
  PbtSweep sweep(pbt_every(4), 2);
  sweep.come(0, 4, 0.9);
  CHECK(sweep.report(1, 4, 0.1).kind == Decision::Kind::kContinue);  // none was asked for
  CHECK(sweep.report(0, 8, 0.9).save);
  CHECK(sweep.report(1, 8, 0.1).kind == Decision::Kind::kContinue);  // it was not saved
  sweep.scheduler->checkpoint_saved({0}, 8);
  CHECK(sweep.report(1, 12, 0.1).kind == Decision::Kind::kReplace);
  CHECK(sweep.report(0, 12, 0.9).save);
  sweep.report(1, 16, 0.1);
  // That of 8 is old by now.
  CHECK(sweep.report(1, 20, 0.1).kind == Decision::Kind::kContinue);
}

TEST_CASE("nan is the worst value, and only a finite and better value makes a donor") {
  PbtSweep sweep(pbt_every(1), 3);
  sweep.come(0, 1, 0.5);
  CHECK(sweep.come(1, 1, 0.6).save);
  const Decision nan = sweep.come(2, 1, std::nan(""));
  REQUIRE(nan.kind == Decision::Kind::kReplace);
  CHECK(nan.reason.starts_with("nan is among the worst 1 of 3"));

  PbtSweep infinite(pbt_every(1), 2);
  infinite.come(0, 1, 0.5);
  infinite.come(1, 1, INFINITY);
  CHECK(infinite.come(0, 2, 0.5).kind == Decision::Kind::kContinue);

  PbtSweep equal(pbt_every(1), 2);
  equal.come(0, 1, 0.5);
  CHECK(equal.come(1, 1, 0.5).save);
  CHECK(equal.come(0, 2, 0.5).kind == Decision::Kind::kContinue);
}

TEST_CASE("under mode min the smallest value is the best") {
  PbtSweep sweep(pbt_every(1), 2, Mode::kMin);
  sweep.come(0, 1, 0.9);
  CHECK(sweep.come(1, 1, 0.1).save);
  const Decision decision = sweep.come(0, 2, 0.9);
  REQUIRE(decision.kind == Decision::Kind::kReplace);
  CHECK(
      decision.reason.starts_with("0.9 is among the worst 1 of 2 at iteration 2: it goes on from "
                                  "trial 1 with 0.1; "));
}

TEST_CASE("a trial that is over is neither a donor nor counted") {
  PbtSweep sweep(pbt_every(1), 3);
  sweep.come(0, 1, 0.5);
  CHECK(sweep.come(1, 1, 0.9).save);
  const Reported last = testing::report(1, 1, 0.9);
  sweep.scheduler->end_trial({1}, TrialEnd::kCompleted, &last);
  CHECK(sweep.come(2, 1, 0.1).kind == Decision::Kind::kContinue);  // trial 0 was not saved
  CHECK(sweep.come(0, 2, 0.5).save);
  CHECK(sweep.come(2, 2, 0.1).kind == Decision::Kind::kReplace);
}

TEST_CASE("mutations depend on seed, trial and iteration alone") {
  const auto x_of = [](std::uint32_t others) {
    PbtSweep sweep(pbt_every(2), 10);
    sweep.come(0, 2, 0.8);
    sweep.come(9, 2, 0.5);
    for (std::uint32_t trial = 2; trial < 2 + others; ++trial) sweep.come(trial, 2, 0.2);
    CHECK(sweep.come(0, 4, 0.9).save);  // the only donor
    const Decision decision = sweep.come(1, 2, 0.1);
    REQUIRE(decision.kind == Decision::Kind::kReplace);
    return decision.replacement->config.get<double>("x");
  };
  CHECK(x_of(0) == x_of(5));
}

TEST_CASE("mutations that break a rule of the space are drawn anew, and values stay if all do") {
  // Trial 1 with x = 2 is the donor; factors give 2.4 and 1.6.
  const auto replaced = [](const PbtOptions& options, const Keeps& keeps) {
    PbtSweep sweep(options, 4);
    sweep.scheduler->take_rules(keeps);
    sweep.come(0, 4, 0.5);
    CHECK(sweep.come(1, 4, 0.9).save);
    const Decision decision = sweep.come(3, 4, 0.1);
    REQUIRE(decision.kind == Decision::Kind::kReplace);
    return decision;
  };
  const auto x_of = [](const Decision& one) { return one.replacement->config.get<double>("x"); };
  PbtOptions options = pbt_every(4);
  options.resample_probability = 0;
  const double first = x_of(replaced(options, {}));
  const double other = first == 2.4 ? 1.6 : 2.4;
  const Decision anew =
      replaced(options, [first](const Config& config) { return config.get<double>("x") != first; });
  CHECK(x_of(anew) == other);
  CHECK_HAS(anew.reason, other == 2.4 ? "x 2.0 * 1.2 = 2.4" : "x 2.0 * 0.8 = 1.6");
  const Decision stays = replaced(options, [](const Config&) { return false; });
  CHECK(x_of(stays) == 2.0);
  CHECK_HAS(stays.reason, "; values stay, since none of 100 mutations kept to `where`");
  // A function of the user's has to keep them as well.
  options.custom_explore = [calls = 0](Config config) mutable {
    config.set("x", calls++ == 0 ? -1.0 : 7.0);
    return config;
  };
  CHECK(x_of(replaced(options, [](const Config& config) { return config.get<double>("x") > 0; })) ==
        7.0);
}

TEST_CASE("a judged result without the metric is passed over, or with require_attrs stops") {
  PbtSweep sweep(pbt_every(4), 2);
  CHECK(sweep.report(0, 4, std::nullopt).until == Milestone{"training_iteration", 4});
  CHECK(sweep.report(0, 5, 0.5).until == Milestone{"training_iteration", 9});

  PbtOptions options = pbt_every(4);
  options.require_attrs = true;
  PbtSweep strict(options, 2);
  CHECK(strict.report(0, 3, std::nullopt).kind == Decision::Kind::kContinue);
  const Decision stop = strict.report(0, 4, std::nullopt);
  CHECK(stop.kind == Decision::Kind::kStop);
  CHECK(stop.reason == "its result at iteration 4 has no number 'm', and require_attrs is set");
}

TEST_CASE("none is judged before the burn-in is over") {
  PbtOptions options = pbt_every(2);
  options.burn_in_period = 5;
  PbtSweep sweep(options, 2);
  CHECK(sweep.scheduler->add_trial({2}) == Milestone{"training_iteration", 5});
  CHECK(sweep.report(0, 4, 0.5).until == Milestone{"training_iteration", 5});
  CHECK(sweep.report(0, 5, 0.5).until == Milestone{"training_iteration", 7});
}

// ---- In turn, and together ----------------------------------------------------------------------

TEST_CASE("the trial that was judged at the earliest time goes first") {
  PbtSweep sweep(pbt_every(2), 3);
  CHECK(sweep.come(0, 2, 0.5).yields);
  sweep.come(1, 2, 0.6);
  sweep.come(0, 4, 0.7);
  const std::set<TrialNumber> pending = {{1}}, paused = {{0}, {2}};
  CHECK(sweep.scheduler->choose({pending, paused, false}) == TrialNumber{2});  // never judged
  const std::set<TrialNumber> none;
  CHECK(sweep.scheduler->choose({pending, {{0}}, false}) == TrialNumber{1});
  CHECK(sweep.scheduler->choose({{{3}}, paused, false}) == TrialNumber{2});
  CHECK(sweep.scheduler->choose({{{3}}, {{0}}, false}) == TrialNumber{3});  // the next new one
}

TEST_CASE("with synch all wait for each other, and then the worst begin with what the best have") {
  PbtOptions options = pbt_every(2);
  options.synch = true;
  PbtSweep sweep(options, 3);
  const std::set<TrialNumber> none;
  CHECK(sweep.come(2, 2, 0.9).reason == "0.9 waits at iteration 2: 2 more trials are to come");
  CHECK(sweep.come(0, 2, 0.1).reason == "0.1 waits at iteration 2: 1 more trial is to come");
  CHECK_FALSE(sweep.scheduler->choose({none, {{0}, {2}}, false}));
  CHECK(sweep.scheduler->choose({{{1}}, {{0}, {2}}, false}) == TrialNumber{1});
  sweep.come(1, 2, 0.5);
  CHECK_FALSE(sweep.scheduler->choose({none, {{0}, {2}}, false}));  // trial 1 is not saved yet
  const std::set<TrialNumber> all = {{0}, {1}, {2}};
  REQUIRE(sweep.scheduler->choose({none, all, false}) == TrialNumber{0});
  CHECK(sweep.scheduler->resume_trial({0}) == Milestone{"training_iteration", 4});
  const auto as = sweep.scheduler->resumed_as({0});
  REQUIRE(as.has_value());
  CHECK(as->by.donor == TrialNumber{2});
  CHECK_FALSE(sweep.scheduler->resumed_as({0}));  // once
  const std::set<TrialNumber> others = {{1}, {2}};
  REQUIRE(sweep.scheduler->choose({none, others, false}) == TrialNumber{1});
  sweep.scheduler->resume_trial({1});
  CHECK_FALSE(sweep.scheduler->resumed_as({1}));
  CHECK(sweep.come(0, 4, 0.3).kind == Decision::Kind::kPause);
  // Trial 2 did not begin again yet, and may.
  CHECK(sweep.scheduler->choose({none, {{0}, {2}}, false}) == TrialNumber{2});
}

TEST_CASE("with synch a trial whose attempt was lost before it was saved comes again") {
  PbtOptions options = pbt_every(2);
  options.synch = true;
  PbtSweep sweep(options, 2);
  sweep.come(0, 2, 0.9);
  sweep.report(1, 2, 0.1);  // its pause is lost with its node
  CHECK(sweep.scheduler->choose({{{1}}, {{0}}, false}) == TrialNumber{1});
}

TEST_CASE("with synch a trial that ends is not waited for") {
  PbtOptions options = pbt_every(2);
  options.synch = true;
  PbtSweep sweep(options, 2);
  sweep.come(0, 2, 0.9);
  const std::set<TrialNumber> none;
  CHECK_FALSE(sweep.scheduler->choose({none, {{0}}, false}));
  sweep.scheduler->end_trial({1}, TrialEnd::kError, nullptr);
  CHECK(sweep.scheduler->choose({none, {{0}}, false}) == TrialNumber{0});
  CHECK(sweep.scheduler->resume_trial({0}) == Milestone{"training_iteration", 4});
}

// ---- As options ---------------------------------------------------------------------------------

TEST_CASE("options out of range are refused by name") {
  const auto with = [](auto change) {
    PbtOptions options = pbt_every(1);
    change(options);
    return pbt_refusal(options);
  };
  CHECK(with([](PbtOptions& o) { o.perturbation_interval = 0; }) ==
        "scheduler pbt: perturbation_interval is 0: it must be above 0");
  CHECK(with([](PbtOptions& o) { o.quantile_fraction = 0.6; }) ==
        "scheduler pbt: quantile_fraction is 0.6: it must be from 0 to 0.5");
  CHECK(with([](PbtOptions& o) { o.resample_probability = 2; }) ==
        "scheduler pbt: resample_probability is 2: it must be from 0 to 1");
  CHECK(with([](PbtOptions& o) { o.burn_in_period = -1; }) ==
        "scheduler pbt: burn_in_period is -1: it must be 0 or more");
  CHECK(with([](PbtOptions& o) {
          o.perturbation_factors = {1.2, 0};
        }) == "scheduler pbt: perturbation_factors is 0: it must be above 0");
  CHECK(with([](PbtOptions& o) { o.perturbation_factors = {}; }) ==
        "scheduler pbt: perturbation_factors is empty: give one or more, as in [1.2, 0.8]");
  CHECK(with([](PbtOptions& o) { o.hyperparam_mutations = {}; }) ==
        "scheduler pbt: hyperparam_mutations: it names no parameter");
  CHECK(with([](PbtOptions& o) {
          o.hyperparam_mutations = {{"lr", 1}};
        }) ==
        "scheduler pbt: hyperparam_mutations/lr: is a constant: give a domain or a list of values");
}

TEST_CASE("pbt is written and read back as in YAML, under Ray Tune's name too") {
  PbtOptions options = pbt_every(3);
  options.hyperparam_mutations = {{"lr", loguniform(1e-3, 1.0)},
                                  {"act", tune::list({"relu", "tanh"})},
                                  {"model", {{"layers", choice({1, 2})}}}};
  options.synch = true;
  options.mode = Mode::kMin;
  const SchedulerSpec spec = pbt(options);
  CHECK(spec.name() == "pbt");
  CHECK(spec.changed_parameters() == std::vector<std::string>{"lr", "act", "model/layers"});
  for (const char* name : {"pbt", "PopulationBasedTraining"}) {
    const SchedulerSpec again = any_scheduler_from_config(name, spec.parameters());
    CHECK(again.name() == "pbt");
    CHECK(again.parameters().dump() == spec.parameters().dump());
    CHECK(again.changed_parameters() == spec.changed_parameters());
  }
  CHECK(any_scheduler_from_config("asha", {}).name() == "asha");
  try {
    any_scheduler_from_config("pbt", {{"pertubation_interval", 3}});
    FAIL("taken");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "scheduler pbt: there is no parameter 'pertubation_interval': did you mean "
          "'perturbation_interval'?");
  }
}

TEST_CASE("with functions it is the program's own") {
  PbtOptions options = pbt_every(1);
  options.custom_explore = [](const Config& config) {
    Config changed = config;
    changed.set("y", 1);
    return changed;
  };
  const SchedulerSpec spec = pbt(options);
  CHECK(spec.name().empty());
  PbtSweep sweep(options, 2);
  sweep.come(0, 1, 0.1);
  sweep.come(1, 1, 0.9);
  const Decision decision = sweep.come(0, 2, 0.1);
  REQUIRE(decision.replacement.has_value());
  CHECK(decision.replacement->config.get<int>("y") == 1);

  options.custom_explore = [](const Config& config) -> Config {
    throw std::runtime_error("no y in " + config.dump());
  };
  PbtSweep failing(options, 2);
  failing.come(0, 1, 0.1);
  failing.come(1, 1, 0.9);
  const Decision stays = failing.come(0, 2, 0.1);
  REQUIRE(stays.replacement.has_value());
  CHECK(stays.replacement->config.dump() == R"({"x":2.0})");
  CHECK(stays.reason.find("values stay, since mutating them failed: no y in") != stays.reason.npos);
}

TEST_CASE("a schedule is played on a trial: it saves, and goes on with the step's values") {
  const SchedulerSpec spec = pbt_replay({{{0, {{"x", 1}}}, {2, {{"x", 2}}}, {5, {{"x", 3}}}}});
  const auto scheduler = spec.make();
  scheduler->configure({"m", Mode::kMax, 1});
  CHECK(scheduler->add_trial({0}) == Milestone{"training_iteration", 2});
  CHECK(scheduler->result({0}, testing::report(0, 1, 0.1)).kind == Decision::Kind::kContinue);
  const Decision pause = scheduler->result({0}, testing::report(0, 2, 0.1));
  CHECK(pause.kind == Decision::Kind::kPause);
  CHECK(pause.reason == "step 2 of the schedule comes at iteration 2");
  CHECK(scheduler->resume_trial({0}) == Milestone{"training_iteration", 5});
  const auto as = scheduler->resumed_as({0});
  REQUIRE(as.has_value());
  CHECK(as->by.donor == TrialNumber{0});
  CHECK(as->by.config.dump() == R"({"x":2})");
  CHECK(scheduler->result({0}, testing::report(0, 5, 0.1)).kind == Decision::Kind::kPause);
  CHECK(scheduler->resume_trial({0}) == Milestone{});  // to its end
  CHECK(scheduler->resumed_as({0})->by.config.dump() == R"({"x":3})");

  const SchedulerSpec again =
      any_scheduler_from_config("PopulationBasedTrainingReplay", spec.parameters());
  CHECK(again.parameters().dump() == spec.parameters().dump());
  const auto refused = [](const char* schedule) {
    try {
      pbt_replay_from_config(Config{{"schedule", parse_json(schedule, "test")}});
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(refused("[]") ==
        "scheduler pbt_replay: schedule: it has no step: `tune schedule DIR TRIAL` "
        "prints one");
  CHECK(refused(R"([{"iteration": 3, "config": {}}, {"iteration": 3, "config": {}}])") ==
        "scheduler pbt_replay: schedule: step 2 is at iteration 3, not after the one before, at 3");
  CHECK(refused(R"([{"lr": 3}])") ==
        "scheduler pbt_replay: schedule: step 1 is {\"lr\":3}: expected {iteration: 4, config: "
        "{lr: 0.1}}");
}
