// The trials that are best by several objectives, or under constraints.
#include <doctest/doctest.h>

#include <cmath>

#include "core/refusal.h"
#include "numbers.h"
#include "tune/results/analysis.h"
#include "tune/story.h"

namespace tune {
namespace {

using testing::kNan;
using testing::refusal;

struct Several : Story {
  Several(std::vector<Goal> goals, std::vector<Constraint> constraints,
          const std::vector<Result>& last)
      : Story(spec_of(std::move(goals), std::move(constraints))) {
    for (std::size_t i = 0; i < last.size(); ++i) {
      Trial& trial = add({{"which", i}});
      report(trial, {{"acc", 1}, {"ms", 1}, {"mb", 1}});  // better than all that follows
      report(trial, last[i]);
      set_status(trial, TrialStatus::kTerminated);
    }
    flush();
    write_spec();
  }
  static ExperimentSpec spec_of(std::vector<Goal> goals, std::vector<Constraint> constraints) {
    ExperimentSpec spec = story_spec();
    if (!goals.empty()) spec.options.metric.clear();
    spec.options.objectives = std::move(goals);
    spec.options.constraints = std::move(constraints);
    return spec;
  }
  Analysis load() const { return Analysis::load(path()); }
  std::vector<int> front() const {
    std::vector<int> found;
    for (const TrialSummary& trial : load().pareto()) {
      found.push_back(trial.config().get<int>("which"));
    }
    return found;
  }
};

const std::vector<Goal> kAccAndMs = {{"acc", Mode::kMax}, {"ms", Mode::kMin}};

TEST_CASE("the front has the trials that none dominates by last results, best acc first") {
  const Several story(kAccAndMs, {},
                      {{{"acc", 0.5}, {"ms", 5}},
                       {{"acc", 0.9}, {"ms", 50}},
                       {{"acc", 0.5}, {"ms", 6}},     // 0 is faster
                       {{"acc", 0.7}, {"ms", kNan}},  // not a number
                       {{"acc", 0.99}},               // a metric is missing
                       {{"acc", 0.8}, {"ms", 8}},
                       {{"acc", 0.5}, {"ms", 5}}});  // as good as 0
  CHECK(story.front() == std::vector<int>{1, 5, 0, 6});
  CHECK(story.load().metric() == "");
  REQUIRE(story.load().objectives().size() == 2);
  CHECK_HAS(refusal([&] { story.load().best_trial(); }),
            "it has 2 objectives, of which none is the best alone: take pareto(), or say which "
            "one, as in best_trial(\"acc\")");
  // One that is named has its own mode.
  CHECK(story.load().best_config("acc").get<int>("which") == 4);
  // Trial 4's last value is the one before.
  CHECK(story.load().best_config("ms").get<int>("which") == 4);
}

TEST_CASE("what breaks a constraint is not on the front, unless all do") {
  const std::vector<Result> results = {{{"acc", 0.5}, {"ms", 5}, {"mb", 90}},
                                       {{"acc", 0.9}, {"ms", 50}, {"mb", 110}},
                                       {{"acc", 0.6}, {"ms", 7}, {"mb", 100}}};
  CHECK(Several(kAccAndMs, {{.metric = "mb", .max = 100}}, results).front() ==
        std::vector<int>{2, 0});
  const Several none(kAccAndMs, {{.metric = "mb", .max = 50}}, results);
  CHECK(none.front() == std::vector<int>{0});
  CHECK_FALSE(none.load().keeps_constraints(none.load().pareto().front()));
}

TEST_CASE("under a metric and constraints the best trial keeps them, if one does") {
  const std::vector<Result> results = {{{"acc", 0.9}, {"mb", 90}},
                                       {{"acc", 0.5}, {"mb", 40}},
                                       {{"acc", 0.6}, {"mb", 50}},
                                       {{"acc", 0.7}}};  // unknown
  const Several some({}, {{.metric = "mb", .max = 50}}, results);
  CHECK(some.load().best_config().get<int>("which") == 2);
  CHECK(some.load().keeps_constraints(some.load().best_trial()));
  CHECK(some.front() == std::vector<int>{2});
  const Several none({}, {{.metric = "mb", .max = 20}}, results);
  CHECK(none.load().best_config().get<int>("which") == 1);
  CHECK_FALSE(none.load().keeps_constraints(none.load().best_trial()));
}

TEST_CASE("the best checkpoint keeps the constraints, if one does") {
  Several story({}, {{.metric = "mb", .max = 50}}, {{{"acc", 0.5}, {"mb", 10}}});
  Trial& trial = story.trials()[0];
  story.report(trial, {{"acc", 0.9}, {"mb", 60}});
  story.report(trial, {{"acc", 0.7}, {"mb", 50}});
  story.report(trial, {{"acc", 0.6}, {"mb", 40}});
  story.flush();
  for (const char* name : {"checkpoint_000003", "checkpoint_000004", "checkpoint_000005"}) {
    std::filesystem::create_directory(story.directory(trial) / name);
  }
  CHECK(story.load().best_checkpoint().iteration == 4);
}

TEST_CASE("a front of nothing says why") {
  const Several missing(kAccAndMs, {}, {{{"acc", 0.5}, {"millis", 5}}});
  CHECK_HAS(refusal([&] { missing.load().pareto(); }), "by 'ms': it is in no result");
  const Several apart(kAccAndMs, {}, {{{"acc", 0.5}}, {{"ms", 5}}});
  CHECK_HAS(refusal([&] { apart.load().pareto(); }),
            "no trial has finite numbers for all of acc, ms in its last result");
}

}  // namespace
}  // namespace tune
