#include "tune/control/silence_watch.h"

#include <doctest/doctest.h>

#include <chrono>

#include "core/trial.h"

namespace tune {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct SilenceScene {
  SilenceWatch watch{"0a1b2"};
  Trial trial;
  ExperimentTime now{};
  std::uint64_t steps = 0;

  void report(Duration step, bool done = false) {
    ++steps;
    Reported report;
    report.time_since_restore = step * static_cast<std::int64_t>(steps);
    report.iterations_since_restore = steps;
    now += step;
    watch.record(ResultRecorded{trial, report, done}, now);
  }
  // Looks every second for so long.
  std::vector<std::string> look_for(Duration time, bool store_is_silent = false) {
    std::vector<std::string> lines;
    for (const ExperimentTime end = now + time; now < end; now += seconds(1)) {
      for (std::string& line : watch.look(now, store_is_silent)) lines.push_back(std::move(line));
    }
    return lines;
  }
};

TEST_CASE("a trial that is silent for 40 of its steps is told once, with its usual step") {
  SilenceScene scene;
  for (int i = 0; i < 3; ++i) scene.report(seconds(5));
  CHECK(scene.look_for(seconds(200)).empty());
  CHECK(scene.look_for(seconds(600)) ==
        std::vector<std::string>{
            "trial 0a1b2_00000 has reported nothing for 201 s; its steps take 5 s"});
  scene.report(seconds(5));
  CHECK(scene.look_for(seconds(1000)).empty());  // it was told of this attempt
  const AttemptEnded ended;
  scene.watch.record(AttemptOver{scene.trial, ended}, scene.now);
  scene.report(seconds(5));
  CHECK(scene.look_for(seconds(3000)).size() == 1);
}

TEST_CASE("short steps are given a minute") {
  SilenceScene scene;
  scene.report(milliseconds(10));
  CHECK(scene.look_for(seconds(60)).empty());
  CHECK(scene.look_for(seconds(60)).size() == 1);
}

TEST_CASE("nothing is said of a trial in its set-up, at its end, with a verdict or without processes") {
  enum class Way { kNoReport, kDone, kVerdict, kOver };
  for (const Way way : {Way::kNoReport, Way::kDone, Way::kVerdict, Way::kOver}) {
    CAPTURE(static_cast<int>(way));
    SilenceScene scene;
    if (way != Way::kNoReport) scene.report(seconds(1), way == Way::kDone);
    if (way == Way::kVerdict) {
      scene.watch.record(VerdictGiven{scene.trial, 1, StopKind::kStop}, scene.now);
    }
    const AttemptEnded ended;
    if (way == Way::kOver) scene.watch.record(AttemptOver{scene.trial, ended}, scene.now);
    CHECK(scene.look_for(minutes(30)).empty());
  }
}

TEST_CASE("the time in which the driver stood still is not held against a trial") {
  SilenceScene scene;
  scene.report(seconds(1));
  CHECK(scene.look_for(seconds(30)).empty());
  scene.now += minutes(20);
  CHECK(scene.look_for(seconds(30)).empty());
  CHECK(scene.look_for(seconds(30)).size() == 1);
}

TEST_CASE("the time in which the store is silent is not held against a trial, which may wait") {
  SilenceScene scene;
  scene.report(seconds(1));
  CHECK(scene.look_for(seconds(30)).empty());
  CHECK(scene.look_for(minutes(20), true).empty());
  CHECK(scene.look_for(seconds(30)).empty());
  CHECK(scene.look_for(seconds(30)).size() == 1);
}

}  // namespace
}  // namespace tune
