#include "tune/control/key_watch.h"

#include <doctest/doctest.h>

#include "core/trial.h"

namespace tune {
namespace {

// The words after a trial's only result.
std::string said(const std::vector<std::string>& expected, const Result& result, bool done = true) {
  const Trial trial;
  Reported report;
  report.result = pack(result);
  return KeyWatch(expected).record(ResultRecorded{trial, report, done});
}

TEST_CASE("a key that is in no result is told with the nearest one") {
  CHECK(said({"acc"}, {{"acc", 0.5}}).empty());
  CHECK(said({"acc", "loss"}, {{"acc", 0.5}, {"los", 0.5}}) ==
        "'loss' is in no result so far (did you mean 'los'?); results have: acc, los");
  CHECK(said({"acc"}, {{"loss", 0.5}}, false).empty());  // it may come yet
  CHECK(said({"training_iteration", ""}, {{"loss", 0.5}}).empty());
  CHECK(said({"training_iteration"}, {{"training_iteration", "one"}}).empty());
  // Known only where timesteps_this_iter is reported.
  CHECK(said({"timesteps_total"}, {{"loss", 0.5}}) ==
        "'timesteps_total' is in no result so far; results have: loss");
}

TEST_CASE("a key that holds no number is told as what it is") {
  CHECK(said({"acc"}, {{"acc", "high"}}) ==
        "'acc' is the text 'high', expected a number; results have: acc");
  CHECK(said({"acc", "n"}, {{"acc", true}}) ==
        "'acc' is true, expected a number; 'n' is in no result so far; results have: acc");
  CHECK(said({"loss"}, {{"loss", Value{{"train", 1.0}}}}) ==
        "'loss' is a map, expected a number; results have: loss/train");
}

TEST_CASE("of several metrics one that a trial's last result lacks is told once") {
  KeyWatch watch({"acc", "lat"}, {"acc", "lat"});
  Trial trial;
  const auto record = [&](std::uint32_t number, const Result& result, bool done) {
    trial.number = {number};
    Reported report;
    report.result = pack(result);
    return watch.record(ResultRecorded{trial, report, done});
  };
  CHECK(record(0, {{"acc", 1}, {"lat", 2}}, true).empty());
  CHECK(record(1, {{"acc", 1}}, false).empty());  // a later result may have it
  CHECK(record(1, {{"acc", 1}, {"lat", 2}}, true).empty());
  CHECK(record(2, {{"acc", 1}, {"lat", "slow"}}, true) ==
        "'lat' is not a number of the last result of trial 2");
  CHECK(record(3, {{"acc", 1}}, true).empty());
}

TEST_CASE("a trial that ends after its last result, as functions do, has had its last result") {
  const auto said_at_end = [](const Trial& trial, std::optional<TrialStatus> former) {
    KeyWatch watch({"acc"}, {"acc", "lat"});
    return watch.record(TrialChanged{trial, former});
  };
  Trial trial;
  trial.status = TrialStatus::kTerminated;
  CHECK(said_at_end(trial, TrialStatus::kPending).empty());  // it never ran
  trial.last.emplace().result = pack(Result{{"loss", 0.5}});
  CHECK(said_at_end(trial, TrialStatus::kRunning) ==
        "'acc' is in no result so far; results have: loss");
  trial.last->result = pack(Result{{"acc", "high"}});
  CHECK(said_at_end(trial, TrialStatus::kRunning) ==
        "'acc' is the text 'high', expected a number; results have: acc");
  CHECK(said_at_end(trial, {}).empty());  // no end: its checkpoints have changed
  trial.was_stopped = true;               // a later result would have had it, maybe
  CHECK(said_at_end(trial, TrialStatus::kRunning).empty());
  trial.was_stopped = false;
  trial.status = TrialStatus::kError;
  CHECK(said_at_end(trial, TrialStatus::kRunning).empty());

  KeyWatch watch({"acc", "lat"}, {"acc", "lat"});
  trial.status = TrialStatus::kTerminated;
  trial.number = {3};
  trial.last->result = pack(Result{{"acc", 1}});
  const Trial whole;
  Reported both;
  both.result = pack(Result{{"acc", 1}, {"lat", 2}});
  CHECK(watch.record(ResultRecorded{whole, both, false}).empty());
  CHECK(watch.record(TrialChanged{trial, TrialStatus::kRunning}) ==
        "'lat' is not a number of the last result of trial 3");
  CHECK(watch.record(TrialChanged{trial, TrialStatus::kRunning}).empty());
}

TEST_CASE("a metric that is in no result is not told again at a trial's end") {
  KeyWatch watch({"acc", "lat"}, {"acc", "lat"});
  const Trial trial;
  Reported report;
  report.result = pack(Result{{"acc", 1}});
  const ResultRecorded last{trial, report, true};
  CHECK_FALSE(watch.record(last).empty());
  CHECK(watch.record(last).empty());
}

}  // namespace
}  // namespace tune
