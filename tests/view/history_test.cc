#include "tune/view/history.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/refusal.h"

namespace tune::view {
namespace {

const char* const kBegin =
    R"({"time":1.0,"event":"node_joined","node":"a","ip":"10.0.0.1","cpus":4.0,"gpus":2,"memory_bytes":1024})";
const char* const kStart =
    R"({"time":2.0,"event":"attempt_started","trial":"2f1e0_00003","attempt":1,"node":"a","pid":9,"gpus":[0,1],"after_iteration":0})";

TEST_CASE("attempts, nodes and verdicts are told by their events") {
  History history;
  history.add(kBegin, "e");
  CHECK(history.add(kStart, "e").trial == 3u);
  REQUIRE(history.attempts().size() == 1);
  CHECK(history.gpu_lists()[history.attempts()[0].gpus] == "0,1");
  CHECK(history.nodes()[0].running == 1);
  CHECK(history.story(3)->status == TrialStatus::kRunning);
  history.add(
      R"({"time":3,"event":"verdict","trial":"2f1e0_00003","attempt":1,"iteration":9,"verdict":"stop",)"
      R"("reason":"0.81 is worse than the cut-off 0.842 of 9 values at iteration 9"})",
      "e");
  REQUIRE(history.verdicts().size() == 1);
  CHECK(history.verdicts()[0].cut_off == doctest::Approx(0.842));
  history.add(
      R"({"time":4,"event":"attempt_ended","trial":"2f1e0_00003","attempt":1,"outcome":"stopped","iteration":9})",
      "e");
  history.add(
      R"({"time":4,"event":"trial_ended","trial":"2f1e0_00003","attempt":1,"status":"TERMINATED","iteration":9})",
      "e");
  CHECK(history.attempts()[0].ended == 4);
  CHECK(history.outcomes()[history.attempts()[0].outcome] == "stopped");
  CHECK(history.nodes()[0].running == 0);
  CHECK(history.story(3)->status == TrialStatus::kTerminated);
  CHECK(history.story(3)->started == 2);
  CHECK(history.story(3)->ended == 4);
}

TEST_CASE("a new driver ends the attempts of the one before") {
  History history;
  history.add(kBegin, "e");
  history.add(kStart, "e");
  history.add(R"({"time":9,"event":"driver_started","epoch":2})", "e");
  CHECK(history.attempts()[0].ended == 9);
  CHECK(history.story(3)->status == TrialStatus::kPending);
  CHECK(history.nodes()[0].running == 0);
}

TEST_CASE("a new driver that waits for machines leaves their attempts running") {
  History history;
  history.add(kBegin, "e");
  history.add(kStart, "e");
  history.add(R"({"time":9,"event":"driver_started","epoch":2,"keeps":true})", "e");
  CHECK(history.attempts()[0].ended == 0);
  CHECK(history.nodes()[0].running == 1);
}

TEST_CASE("events and fields of later versions are passed over") {
  History history;
  history.add(R"({"time":1,"event":"comet","tail":[1,2]})", "e");
  history.add(
      R"({"event":"attempt_started","trial":"2f1e0_00001","attempt":"two","node":7,"gpus":"all"})",
      "e");
  history.add(R"({"time":"noon","event":5})", "e");
  history.add(R"({"time":1,"event":"verdict","trial":"2f1e0_99999999999","iteration":-1})", "e");
  history.add("{}", "e");
  CHECK(history.lines() == 5);
  CHECK(history.attempts().size() == 1);
}

TEST_CASE("a trial that goes on from another one's checkpoint is kept with both iterations") {
  History history;
  history.add(R"({"time":1,"event":"replaced","trial":"2f1e0_00004","iteration":10,)"
              R"("donor":"2f1e0_00002","from":"2f1e0_00003","from_iteration":8})",
              "e");
  history.add(R"({"time":1,"event":"replaced","trial":"2f1e0_00004","iteration":10})", "e");
  REQUIRE(history.descents().size() == 1);
  const Descent& told = history.descents()[0];
  CHECK(told.trial == 4);
  CHECK(told.iteration == 10);
  CHECK(told.from == 3);
  CHECK(told.from_iteration == 8);
}

TEST_CASE("lines that are not objects are refused by the file's name") {
  History history;
  for (const char* line : {"", "[]", "{", "nonsense"}) {
    CHECK_HAS(testing::refusal([&] { history.add(line, "events.jsonl"); }), "events.jsonl");
  }
}

TEST_CASE("notices are kept to a number, the newest") {
  History history;
  for (std::size_t i = 0; i < kMaxNotices + 5; ++i) {
    history.add(R"({"time":1,"event":"notice","text":")" + std::to_string(i) + "\"}", "e");
  }
  CHECK(history.notices().size() == kMaxNotices);
  CHECK(history.notices().front().text == "5");
}

TEST_CASE("cut-offs of reasons") {
  CHECK(cut_off_of("-1 is worse than the cut-off -1e-05 of 2 values") == -1e-05);
  CHECK(cut_off_of("waits: 2 values too few") == std::nullopt);
  CHECK(cut_off_of("the cut-off of") == std::nullopt);
}

}  // namespace
}  // namespace tune::view
