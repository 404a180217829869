// Schedulers that compare trials by several objectives, or under constraints.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "schedulers/asha.h"
#include "schedulers/hyperband.h"
#include "schedulers/median_stopping.h"
#include "tune/testing/scheduler_conformance.h"

using namespace tune;
using namespace tune::testing;

namespace {

using Kind = Decision::Kind;

const Objective kLossAndSize = {"", Mode::kMax, 7, {{"loss", Mode::kMin}, {"size", Mode::kMin}}};
const Objective kLossInTime = {"loss", Mode::kMin, 7, {}, {{.metric = "ms", .max = 10}}};

Decision judged(TrialScheduler& scheduler, std::uint32_t trial, std::uint64_t iteration,
                const Result& result) {
  if (iteration == 1) scheduler.add_trial({trial});
  return scheduler.result({trial}, report(trial, iteration, result));
}

}  // namespace

TEST_CASE("asha stops what others dominate, and lets trade-offs go on") {
  // Two of four go on: (n - 1)(1 - 1/2) of the others are worse.
  const auto scheduler =
      configured(asha({.max_t = 4, .reduction_factor = 2, .rule = AshaRule::kTop}), kLossAndSize);
  CHECK(judged(*scheduler, 0, 1, {{"loss", 0.5}, {"size", 50}}).kind == Kind::kContinue);
  // Of two the best one goes on: both are in the first front, and 0 is not the best by loss.
  CHECK(judged(*scheduler, 1, 1, {{"loss", 0.4}, {"size", 90}}).kind == Kind::kContinue);
  const Decision worse = judged(*scheduler, 2, 1, {{"loss", 0.6}, {"size", 60}});
  CHECK(worse.kind == Kind::kStop);
  CHECK(worse.reason ==
        "(0.6, 60.0) is at place 3 of 3 by non-dominated rank, not among the best 1, "
        "at iteration 1");
  REQUIRE(worse.place.has_value());
  CHECK(worse.place->value == 0.6);
  CHECK(worse.place->rank == 3);
  CHECK(worse.place->of == 3);
  CHECK_FALSE(worse.place->cut_off.has_value());
  // Four values, two places: 1 (the best loss), and of the front the one farthest from it.
  CHECK(judged(*scheduler, 3, 1, {{"loss", 0.9}, {"size", 10}}).kind == Kind::kContinue);
  CHECK(scheduler->status_lines().back() ==
        "Bracket: Iter 4.000: None | Iter 2.000: None | Iter 1.000: 4 in 2 fronts");
}

TEST_CASE("asha's rule ray lets a trial go on that is not worse than the percentile's trial") {
  // Factor 4: of n others (n - 1) * 3 / 4 are below. n = 1: the own is compared with the only one.
  const auto scheduler = configured(asha({.max_t = 16}), kLossAndSize);
  CHECK(judged(*scheduler, 0, 1, {{"loss", 0.5}, {"size", 5}}).kind == Kind::kContinue);
  CHECK(judged(*scheduler, 1, 1, {{"loss", 0.6}, {"size", 6}}).kind == Kind::kStop);
  CHECK(judged(*scheduler, 2, 1, {{"loss", 0.5}, {"size", 5}}).kind == Kind::kContinue);  // a tie
  CHECK(judged(*scheduler, 3, 1, {{"loss", 0.1}, {"size", 9}}).kind == Kind::kContinue);
}

TEST_CASE("a trial that breaks a constraint is worse than all that keep it") {
  for (const AshaRule rule : {AshaRule::kRay, AshaRule::kTop}) {
    const auto scheduler =
        configured(asha({.max_t = 4, .reduction_factor = 2, .rule = rule}), kLossInTime);
    CHECK(judged(*scheduler, 0, 1, {{"loss", 0.9}, {"ms", 9}}).kind == Kind::kContinue);
    const Decision broken = judged(*scheduler, 1, 1, {{"loss", 0.1}, {"ms", 11}});
    CHECK(broken.kind == Kind::kStop);
    CHECK(broken.reason.starts_with("0.1, which breaks constraints, is at place 2 of 2"));
    CHECK(judged(*scheduler, 2, 1, {{"loss", 0.8}, {"ms", 10}}).kind == Kind::kContinue);
  }
}

TEST_CASE("a result that lacks one of the metrics is not judged, the next one is") {
  const auto scheduler = configured(asha({.max_t = 4}), kLossAndSize);
  judged(*scheduler, 0, 1, {{"loss", 0.1}, {"size", 1}});
  const Decision waits = judged(*scheduler, 1, 1, {{"loss", 0.9}});
  CHECK(waits.kind == Kind::kContinue);
  CHECK(waits.until == Milestone{"training_iteration", 1});
  CHECK(judged(*scheduler, 1, 2, {{"loss", 0.9}, {"size", 9}}).kind == Kind::kStop);
}

TEST_CASE("a metric that is in no result stops no sweep: trials end at max_t, unjudged") {
  for (const SchedulerSpec& spec :
       {asha({.max_t = 3}), asha({.max_t = 3, .type = AshaType::kPromote}),
        hyperband({.max_t = 3, .reduction_factor = 3})}) {
    CAPTURE(spec.name());
    const auto scheduler = configured(spec, kLossAndSize);
    for (const std::uint64_t iteration : {1, 2}) {
      CHECK(judged(*scheduler, 0, iteration, {{"loss", 0.1}}).kind == Kind::kContinue);
    }
    const Decision end = judged(*scheduler, 0, 3, {{"loss", 0.1}});
    CHECK(end.kind == Kind::kStop);
    CHECK(end.reason == "reached max_t 3 at iteration 3, without size");
  }
}

TEST_CASE("asha by promotion lets the first front go on, from its ends inwards") {
  const auto scheduler = configured(
      asha({.max_t = 8, .reduction_factor = 2, .type = AshaType::kPromote}), kLossAndSize);
  std::set<TrialNumber> paused;
  const double values[][2] = {{5, 5}, {9, 1}, {6, 6}, {1, 9}};
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Decision decision =
        judged(*scheduler, i, 1, {{"loss", values[i][0]}, {"size", values[i][1]}});
    CHECK(decision.kind == Kind::kPause);
    CHECK(decision.place.value().value == values[i][0]);
    CHECK(decision.place->of == i + 1);
    paused.insert({i});
  }
  const std::set<TrialNumber> none;
  // Two of four: 3 has the best loss, 1 lies farthest from it.
  for (const std::uint32_t expected : {3u, 1u}) {
    const auto chosen = scheduler->choose({none, paused, true});
    REQUIRE(chosen == TrialNumber{expected});
    CHECK(scheduler->resume_trial(*chosen) == Milestone{"training_iteration", 2});
    paused.erase(*chosen);
  }
  CHECK_FALSE(scheduler->choose({none, paused, true}).has_value());
  // Two more: three places, the third of which is 0's.
  judged(*scheduler, 4, 1, {{"loss", 7}, {"size", 7}});
  judged(*scheduler, 5, 1, {{"loss", 8}, {"size", 8}});
  CHECK(scheduler->choose({none, paused, true}) == TrialNumber{0});
}

TEST_CASE("hyperband lets the best by non-dominated rank go on") {
  // Brackets of max_t 3: one with 3 trials that halves once, at iteration 1, to ceil(3 / 3) = 1.
  const auto scheduler = configured(hyperband({.max_t = 3, .reduction_factor = 3}), kLossAndSize);
  std::set<TrialNumber> paused;
  const double values[][2] = {{5, 5}, {4, 4}, {6, 3}};
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK(judged(*scheduler, i, 1, {{"loss", values[i][0]}, {"size", values[i][1]}}).kind ==
          Kind::kPause);
    paused.insert({i});
  }
  const std::set<TrialNumber> none;
  CHECK(scheduler->choose({none, paused, true}) == TrialNumber{1});
}

TEST_CASE("median stopping stops what more than half dominate") {
  const auto scheduler =
      configured(median_stopping({.grace_period = 1, .min_samples_required = 2}), kLossAndSize);
  CHECK(judged(*scheduler, 0, 1, {{"loss", 1}, {"size", 1}}).kind == Kind::kContinue);
  CHECK(judged(*scheduler, 1, 1, {{"loss", 2}, {"size", 2}}).kind == Kind::kContinue);
  // At place 2 of 3 one is better, not more than half.
  CHECK(judged(*scheduler, 2, 1, {{"loss", 1.5}, {"size", 1.5}}).kind == Kind::kContinue);
  CHECK(judged(*scheduler, 3, 1, {{"loss", 3}, {"size", 3}}).kind == Kind::kStop);
}

TEST_CASE("a scheduler's own metric beside objectives is refused, and so is another one's state") {
  CHECK_THROWS_WITH_AS(configured(asha({.metric = "loss"}), kLossAndSize),
                       doctest::Contains("the experiment has objectives: leave them out"), Error);
  CHECK_FALSE(median_stopping({.rule = MedianRule::kBest}).make()->takes_several_objectives());
  const std::string state = configured(asha(), kLossAndSize)->save();
  CHECK_THROWS_WITH_AS(configured(asha(), kLossInTime)->restore(state),
                       doctest::Contains("loss (min), size (min)"), Error);
  CHECK_THROWS_AS(configured(asha(), "m")->restore(state), Error);
}
