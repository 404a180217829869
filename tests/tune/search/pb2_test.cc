#include "tune/search/pb2/pb2.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/random.h"
#include "core/refusal.h"
#include "schedulers/pbt_scheduler.h"
#include "tune/search/pbt/pbt.h"
#include "tune/spec/scheduler_kinds.h"
#include "tune/testing/reports.h"
#include "tune/testing/scheduler_conformance.h"

using namespace tune;
using namespace tune::testing;

namespace {

Pb2Options every(double interval) {
  Pb2Options options;
  options.perturbation_interval = interval;
  options.hyperparam_bounds = {{"x", uniform(0, 1)}};
  return options;
}

std::string refusal(const SearchSpace& bounds) {
  try {
    Pb2Options options = every(1);
    options.hyperparam_bounds = bounds;
    pb2(options);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// The best score of 6 trials after 30 steps, of which each gains most where x is 0.2 and later 0.8.
double best_of(const SchedulerSpec& spec, std::uint64_t seed) {
  constexpr std::uint32_t kTrials = 6;
  const auto scheduler = spec.make();
  scheduler->configure({"m", Mode::kMax, seed});
  RandomStream random(seed, "pb2_test", 0);
  double x[kTrials], score[kTrials] = {};
  for (std::uint32_t trial = 0; trial < kTrials; ++trial) {
    x[trial] = random.uniform();
    scheduler->take_config({trial}, pack(Config{{"x", x[trial]}}));
    scheduler->add_trial({trial});
  }
  for (std::uint64_t step = 1; step <= 30; ++step) {
    for (std::uint32_t trial = 0; trial < kTrials; ++trial) {
      const double gap = x[trial] - (step <= 15 ? 0.2 : 0.8);
      score[trial] += std::exp(-gap * gap / 0.05) + 0.02 * random.normal();
      const Decision decision = scheduler->result({trial}, report(trial, step, score[trial]));
      if (decision.save) scheduler->checkpoint_saved({trial}, step);
      if (!decision.replacement) continue;
      x[trial] = decision.replacement->config.get<double>("x");
      score[trial] = score[decision.replacement->donor.value];
    }
  }
  return *std::max_element(score, score + kTrials);
}

}  // namespace

TEST_CASE("pb2 keeps the contract") {
  Pb2Options half = every(5);  // each replacement fits a process, which takes its time
  half.quantile_fraction = 0.5;
  half.burn_in_period = 3;
  check_scheduler(pb2(half));
  Pb2Options strict = every(5);
  strict.synch = true;
  strict.require_attrs = true;
  strict.hyperparam_bounds = {{"x", lograndint(1, 100)}};
  check_scheduler(pb2(strict));
}

namespace {

// Trial 0 after several intervals in which trial 1, the donor, gained `gain` a step.
Decision replaced_after(double gain, const Keeps& keeps) {
  const auto scheduler = pb2(every(1)).make();
  scheduler->configure({"m", Mode::kMax, 1});
  scheduler->take_rules(keeps);
  for (std::uint32_t trial = 0; trial < 2; ++trial) {
    scheduler->take_config({trial}, pack(Config{{"x", 0.25 + trial / 4.0}}));
    scheduler->add_trial({trial});
  }
  Decision newest;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    const double sign = step % 2 == 0 ? 1 : -1;
    if (scheduler->result({1}, report(1, step, sign * gain)).save) {
      scheduler->checkpoint_saved({1}, step);
    }
    Decision decision = scheduler->result({0}, report(0, step, -1.2 * gain));
    if (decision.replacement) newest = std::move(decision);
  }
  return newest;
}

double x_of(const Decision& decision) {
  REQUIRE(decision.replacement.has_value());
  return decision.replacement->config.get<double>("x");
}

}  // namespace

TEST_CASE("where the model's numbers fail, values are drawn, and the reason says so") {
  const Decision decision = replaced_after(8e307, {});  // squares of gains are infinite
  CHECK_HAS(decision.reason, "; drawn, the model's numbers failed");
  CHECK(x_of(decision) > 0);
  CHECK(x_of(decision) != 0.5);  // the donor's
}

TEST_CASE("the model's values keep the rules of the space, and so do drawn ones") {
  const double free = x_of(replaced_after(1, {}));
  const auto other = [free](const Config& config) {
    return std::abs(config.get<double>("x") - free) > 0.25;
  };
  const Decision by_model = replaced_after(1, other);
  CHECK(std::abs(x_of(by_model) - free) > 0.25);
  CHECK(by_model.reason.find("drawn") == std::string::npos);
  const auto small = [](const Config& config) { return config.get<double>("x") < 0.1; };
  CHECK(x_of(replaced_after(8e307, small)) < 0.1);
  const Decision stays = replaced_after(1, [](const Config&) { return false; });
  CHECK(x_of(stays) == 0.5);
  CHECK_HAS(stays.reason, "; values stay, since none of 100 draws kept to `where`");
}

TEST_CASE("pb2 gains more than values that are drawn") {
  PbtOptions drawn;
  drawn.perturbation_interval = 1;
  drawn.hyperparam_mutations = {{"x", uniform(0, 1)}};
  drawn.resample_probability = 1;
  double ours = 0, luck = 0;
  constexpr int kSeeds = 20;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ours += best_of(pb2(every(1)), seed) / kSeeds;
    luck += best_of(pbt(drawn), seed) / kSeeds;
  }
  CHECK(ours > luck + 0.5);
}

TEST_CASE("values are drawn while too little is known, and stay within their domain") {
  Pb2Options options = every(1);
  options.hyperparam_bounds = {{"n", lograndint(1, 1000)}, {"lr", tune::list({0.1, 0.2})}};
  const auto scheduler = pb2(options).make();
  scheduler->configure({"m", Mode::kMax, 1});
  for (std::uint32_t trial = 0; trial < 2; ++trial) {
    scheduler->take_config({trial}, pack(Config{{"n", 5}, {"lr", 0.15}, {"y", "text"}}));
    scheduler->add_trial({trial});
  }
  scheduler->result({0}, report(0, 1, 0.1));
  CHECK(scheduler->result({1}, report(1, 1, 0.9)).save);
  scheduler->checkpoint_saved({1}, 1);
  const Decision decision = scheduler->result({0}, report(0, 2, 0.2));
  REQUIRE(decision.replacement.has_value());
  CHECK(decision.reason.find("; drawn, too little is known: n 5 to ") != std::string::npos);
  const Config& config = decision.replacement->config;
  CHECK(config.get<int>("n") >= 1);
  CHECK(config.get<int>("n") < 1000);
  CHECK(config.get<double>("lr") >= 0.1);
  CHECK(config.get<double>("lr") <= 0.2);
  CHECK(config.get<std::string>("y") == "text");
}

TEST_CASE("pb2 is written and read back as in YAML, and refuses what has no range") {
  Pb2Options options = every(3);
  options.hyperparam_bounds = {{"lr", loguniform(1e-3, 1.0)}, {"m", {{"x", uniform(0, 1)}}}};
  options.synch = true;
  const SchedulerSpec spec = pb2(options);
  const SchedulerSpec again = any_scheduler_from_config("PB2", spec.parameters());
  CHECK(again.name() == "pb2");
  CHECK(again.changed_parameters() == std::vector<std::string>{"lr", "m/x"});
  CHECK(refusal({{"act", choice({"a", "b"})}}) ==
        "scheduler pb2: hyperparam_bounds/act: it has no order or no bounds: give uniform, "
        "loguniform, randint or [low, high]");
  CHECK(refusal({{"lr", 0.1}}) ==
        "scheduler pb2: hyperparam_bounds/lr: expected [low, high] or a domain");
  CHECK(refusal({}) == "scheduler pb2: hyperparam_bounds: it names no parameter");
}
