// News that the person at the console is told at once.
#include "tune/results/news.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "core/refusal.h"
#include "tune/spec/objectives.h"
#include "tune/story.h"

namespace tune {
namespace {

struct Silent : ProgressReporter {
  void status(const ExperimentStatus&, bool) override {}
  void notice(const std::string&) override {}
  void failure(const Trial&, const std::string&, const std::filesystem::path&, bool) override {}
};

// The words after a trial's only result.
std::string said(const Objective& objective, const Result& result,
                 const ExperimentSpec& spec = story_spec()) {
  News news(spec, objective, "results/x", std::make_shared<Silent>());
  const Trial trial;
  Reported report;
  report.result = pack(result);
  return news.record(ResultRecorded{trial, report, true});
}

TEST_CASE("a metric that is missing is told, and with several what follows from it") {
  const Result result = {{"loss", 0.5}, {"training_iteration", 1}, {"acc", 1}};
  CHECK_HAS(said({"los", Mode::kMin}, result), "'los' is in no result so far");
  CHECK_FALSE(testing::has(said({"los", Mode::kMin}, result), "not judged"));
  const std::string several = said({"", Mode::kMax, 0, {{"loss"}, {"size"}}}, result);
  CHECK_HAS(several, "'size' is in no result so far");
  CHECK_HAS(several,
            "; a result that lacks one of the metrics is not judged, and the searcher learns "
            "nothing of it");
  const Objective there = {"", Mode::kMax, 0, {{"loss"}, {"acc"}}};
  CHECK(said(there, result) == "");
  CHECK_HAS(said({"loss", Mode::kMin, 0, {}, {{.metric = "ms", .max = 1}}}, result),
            "'ms' is in no result so far");
}

TEST_CASE("a time_attr that is missing is told: without it trials may train for ever") {
  ExperimentSpec spec = story_spec();
  spec.options.scheduler = asha({.max_t = 9, .time_attr = "epoc"});
  const std::string missing = said({"loss", Mode::kMin}, {{"loss", 1}, {"epoch", 1}}, spec);
  CHECK_HAS(missing, "'epoc' is in no result so far (did you mean 'epoch'?)");
  CHECK_HAS(missing, "; without its time_attr the scheduler judges no trial, and ends none");
  CHECK(said({"loss", Mode::kMin}, {{"loss", 1}, {"epoc", 1}}, spec) == "");
  spec.options.scheduler = asha({.max_t = 9});
  CHECK(said({"loss", Mode::kMin}, {{"loss", 1}}, spec) == "");
}

}  // namespace
}  // namespace tune
