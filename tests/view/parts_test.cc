// The columns and JSON of single parts of the page: rungs, nodes, what a trial used.
#include <doctest/doctest.h>

#include <cmath>

#include "tune/view/nodes_json.h"
#include "tune/view/rungs_blob.h"
#include "tune/view/usage_blob.h"
#include "tune/view/worker.h"
#include "view/viewed.h"

namespace tune::view {
namespace {

using testing::add_trial;
using testing::append_text;
using testing::event;
using testing::trial_name;
using testing::write_text;
using U32 = std::vector<std::uint32_t>;
using U8 = std::vector<std::uint8_t>;

std::string rung(int trial, const std::string& rest) {
  return event("rung", trial, "," + rest);
}

TEST_CASE("rungs of an older folder: the values there, who was stopped, the cut-offs") {
  Viewed viewed;
  add_trial(viewed.path, 0, "{}", "{\"loss\":3}\n");
  add_trial(viewed.path, 1, "{}", "{\"loss\":2}\n{\"loss\":1.5}\n{\"loss\":1}\n");
  write_text(
      viewed.path / "events.jsonl",
      event("attempt_started", 0) +
          event(
              "verdict", 0,
              R"(,"iteration":1,"verdict":"stop","reason":"3 is worse than the cut-off 2.5 of 4 values")"));
  const std::string blob = rungs_blob(viewed.load());
  // Of grace_period, factor 3. The verdict came last.
  CHECK(column<double>(blob, "milestone") == std::vector<double>{1, 3, 9});
  CHECK(column<std::uint32_t>(blob, "row") == U32{1, 1, 0});
  CHECK(column<float>(blob, "value") == std::vector<float>{2, 1, 3});
  CHECK(column<std::uint8_t>(blob, "verdict") == U8{0, 0, 1});
  CHECK(column<std::uint32_t>(blob, "of") == U32{0, 0, 0});
  CHECK(std::isnan(column<float>(blob, "cut_off")[0]));
  CHECK(column<float>(blob, "cut_off")[2] == 2.5f);
}

TEST_CASE("rungs are as the events tell, with brackets, ranks and who waits or went on") {
  Viewed viewed;
  add_trial(viewed.path, 0, "{}", "{\"loss\":3}\n");
  add_trial(viewed.path, 1, "{}", "{\"loss\":2}\n{\"loss\":1.5}\n{\"loss\":1}\n");
  std::string nine;
  for (int i = 0; i < 9; ++i) nine += "{\"loss\":0.5}\n";
  add_trial(viewed.path, 2, "{}", nine);
  write_text(
      viewed.path / "events.jsonl",
      rung(
          0,
          R"("iteration":1,"milestone":1.0,"value":3.0,"rank":1,"of":1,"bracket":4,"verdict":"pause")") +
          rung(
              1,
              R"("iteration":1,"milestone":1.0,"value":2.0,"rank":1,"of":2,"bracket":4,"verdict":"pause")") +
          rung(
              1,
              R"("iteration":3,"milestone":3.0,"value":1.0,"cut_off":0.75,"rank":2,"of":2,"bracket":4,"verdict":"stop")") +
          rung(
              2,
              R"("iteration":3,"milestone":3.0,"value":0.5,"rank":1,"of":1,"bracket":5,"verdict":"go_on")") +
          rung(7,
               R"("iteration":3,"milestone":3.0,"value":"nan","rank":1,"of":1,"verdict":"stop")"));
  const std::string blob = rungs_blob(viewed.load());
  CHECK(header_in(blob).at("time").string() == "training_iteration");
  // Trial 2 came to max_t, 9, where no rung is; trial 7 has no folder.
  CHECK(column<double>(blob, "milestone") == std::vector<double>{1, 3, 9});
  CHECK(column<std::uint32_t>(blob, "rung") == U32{0, 0, 1, 1, 2});
  CHECK(column<std::uint32_t>(blob, "row") == U32{0, 1, 1, 2, 2});
  CHECK(column<std::uint32_t>(blob, "rank") == U32{1, 1, 2, 1, 0});
  CHECK(column<std::uint32_t>(blob, "of") == U32{1, 2, 2, 1, 0});
  CHECK(column<std::uint32_t>(blob, "bracket") == U32{4, 4, 4, 5, 5});
  CHECK(column<std::uint8_t>(blob, "verdict") == U8{2, 3, 1, 0, 0});
  CHECK(column<float>(blob, "cut_off")[2] == 0.75f);
}

TEST_CASE("with several objectives the rungs have the first value and the rank of each trial") {
  Viewed viewed;
  write_text(viewed.path / "experiment.json",
             R"({"version": 1, "name": "s", "trainable": "T", "num_samples": 3, "mode": "max",)"
             R"("metric": "", "objectives": [{"metric": "acc", "mode": "max"}, {"metric": "cost",)"
             R"("mode": "min"}], "config": {}, "scheduler": {"asha": {"max_t": 9}}})");
  add_trial(viewed.path, 0, "{}", "{\"acc\":0.5,\"cost\":3}\n");
  write_text(
      viewed.path / "events.jsonl",
      rung(0, R"("iteration":1,"milestone":1.0,"value":0.5,"rank":2,"of":3,"verdict":"stop")"));
  const std::string blob = rungs_blob(viewed.load());
  CHECK(column<float>(blob, "value") == std::vector<float>{0.5});
  CHECK(column<std::uint32_t>(blob, "rank") == U32{2});
  CHECK(column<std::uint32_t>(blob, "bracket") == U32{RungVisit::kNoBracket});
}

TEST_CASE("looking at a sweep that runs takes a hundredth of the processors") {
  using std::chrono::milliseconds;
  CHECK(pause_after({}, 2) == milliseconds(100));
  CHECK(pause_after({.spent = milliseconds(1), .is_live = true}, 2) == milliseconds(100));
  // 8 ms of 2 processors: 100 * 8 / 2.
  CHECK(pause_after({.spent = milliseconds(8), .is_live = true}, 2) == milliseconds(400));
  CHECK(pause_after({.spent = milliseconds(8), .is_behind = true, .is_live = true}, 64) ==
        std::chrono::microseconds(12500));
  CHECK(pause_after({.spent = milliseconds(0), .is_behind = true, .is_live = true}, 0) ==
        milliseconds(1));
  // When it is over, all that is left is read at once.
  CHECK(pause_after({.spent = milliseconds(8), .is_behind = true}, 2) == milliseconds(1));
}

TEST_CASE("nodes: what running trials hold and use, and the jobs that a pool waits for") {
  Viewed viewed("running");
  add_trial(viewed.path, 0, "{}", "");
  add_trial(viewed.path, 1, "{}", "");
  add_trial(viewed.path, 2, "{}", "");
  write_text(viewed.path / trial_name(0) / "usage.jsonl",
             "{\"time\":1,\"attempt\":1,\"cpus\":9.0,\"memory_bytes\":9}\n"
             "{\"time\":3,\"attempt\":1,\"cpus\":1.5,\"memory_bytes\":1000}\n");
  write_text(viewed.path / trial_name(1) / "usage.jsonl",
             "{\"time\":1,\"attempt\":7,\"cpus\":9.0,\"memory_bytes\":9}\n");
  const std::string node = R"(,"node":"a","pid":9,"gpus":[0])";
  write_text(
      viewed.path / "events.jsonl",
      R"({"time":1.0,"event":"node_joined","node":"a","ip":"10.0.0.1","cpus":4.0,"gpus":2,"memory_bytes":1024})"
      "\n" +
          event("attempt_started", 0, node) + event("attempt_started", 1, node) +
          R"({"time":2,"event":"allocation","number":1,"state":"requested"})"
          "\n"
          R"({"time":3,"event":"allocation","number":1,"state":"queued","id":"77","reason":"Priority"})"
          "\n"
          R"({"time":4,"event":"allocation","number":2,"state":"requested"})"
          "\n"
          R"({"time":5,"event":"allocation","number":2,"state":"ended","reason":"refused"})"
          "\n"
          R"({"time":6,"event":"pool","paused":true,"cause":"3 starts went wrong"})"
          "\n");
  const Value told = nodes_of(viewed.load());
  REQUIRE(told.at("nodes").list().size() == 1);
  const Value& here = told.at("nodes").list()[0];
  CHECK(here.at("running").number() == 2);
  CHECK(here.at("cpus_used").number() == 1.5);  // the other's line is of an older attempt
  CHECK(here.at("memory_used").number() == 1000);
  CHECK(told.at("waiting").number() == 1);
  REQUIRE(told.at("allocations").list().size() == 1);
  const Value& job = told.at("allocations").list()[0];
  CHECK(job.at("state").string() == "queued");
  CHECK(job.at("reason").string() == "Priority");
  CHECK(job.at("asked").number() == 2);
  CHECK(job.at("since").number() == 3);
  CHECK(told.at("why_paused").string() == "3 starts went wrong");
}

TEST_CASE("what a trial used is columns, also where lines are damaged and GPUs come and go") {
  Viewed viewed;
  add_trial(viewed.path, 0, "{}", "");
  add_trial(viewed.path, 1, "{}", "");
  write_text(
      viewed.path / trial_name(0) / "usage.jsonl",
      R"({"time":1,"attempt":1,"cpus":0.5,"memory_bytes":100})"
      "\n{\"time\":2,\"att\n[]\n"
      R"({"time":3,"attempt":2,"cpus":1,"memory_bytes":200,"gpus":[{"gpu":1,"busy":0.5,"memory_bytes":7},{"gpu":-1},{"gpu":"x"},4]})"
      "\n"
      R"({"time":5,"attempt":2,"cpus":"much","memory_bytes":300})"
      "\n{\"time\":7");
  const Experiment& experiment = viewed.load();
  const std::string blob = usage_blob(experiment, 0);
  CHECK(column<double>(blob, "time") == std::vector<double>{1, 3, 5});
  CHECK(column<double>(blob, "attempt") == std::vector<double>{1, 2, 2});
  CHECK(column<double>(blob, "cpus")[1] == 1);
  CHECK(std::isnan(column<double>(blob, "cpus")[2]));
  CHECK(header_in(blob).at("gpus").dump() == "[1]");
  const std::vector<double> busy = column<double>(blob, "busy 1");
  REQUIRE(busy.size() == 3);
  CHECK(std::isnan(busy[0]));
  CHECK(busy[1] == 0.5);
  CHECK(std::isnan(busy[2]));
  CHECK(column<double>(usage_blob(experiment, 1), "time").empty());
}

}  // namespace
}  // namespace tune::view
