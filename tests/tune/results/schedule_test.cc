#include "tune/results/schedule.h"

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "tune/results/analysis.h"
#include "tune/results/events_log.h"
#include "tune/results/results_csv.h"
#include "tune/story.h"

namespace tune {
namespace {

std::string line(const char* trial, int at, const char* from, int from_at, int old_x, int new_x) {
  return to_json(Value{{"time", 1.5},
                       {"event", "replaced"},
                       {"trial", trial},
                       {"attempt", 1},
                       {"iteration", at},
                       {"donor", from},
                       {"from", from},
                       {"from_iteration", from_at},
                       {"old", {{"x", old_x}}},
                       {"new", {{"x", new_x}}},
                       {"reason", "why"}}) +
         "\n";
}

struct ScheduleFolder {
  explicit ScheduleFolder(const std::string& events) {
    write_file_atomically(path.path() / "events.jsonl", events);
    for (const char* trial : {"a", "b", "c"}) {
      std::filesystem::create_directories(path.path() / trial);
      write_file_atomically(path.path() / trial / "params.json", "{\"x\":9}\n");
    }
  }
  // "0 x 1 by a from 0, ..."
  std::string schedule(const char* trial) const {
    std::string words;
    for (const ScheduleEntry& one : read_schedule(path.path(), trial)) {
      words += (words.empty() ? "" : ", ") + std::to_string(one.iteration) + " x " +
               one.config.at("x").dump() + " by " + one.trial + " from " +
               std::to_string(one.trial_iteration) + (one.reason.empty() ? "" : ": " + one.reason);
    }
    return words;
  }
  int x_at(const char* trial, std::uint64_t iteration) const {
    return config_at(path.path(), trial, iteration).get<int>("x");
  }
  testing::TemporaryFolder path;
};

TEST_CASE("a trial that was never replaced has one configuration") {
  const ScheduleFolder folder("{\"time\":1.0,\"event\":\"driver_started\",\"epoch\":1}\n");
  CHECK(folder.schedule("a") == "0 x 9 by a from 0");
  CHECK(folder.x_at("a", 7) == 9);
}

TEST_CASE("a schedule follows the model back through the trials that trained it") {
  // b trains with 2 up to 6, and from there on a's model of iteration 4 with 3. a goes on from b's
  // of iteration 8, which has done 4 + 2 steps, with 5. c has b's of 6, before b was replaced.
  const ScheduleFolder folder(
      line("b", 6, "a", 4, 2, 3) + line("a", 9, "b", 8, 1, 5) +
      "{\"event\":\"notice\",\"text\":\"\\\"event\\\":\\\"replaced\\\"\"}\n" +
      line("c", 7, "b", 6, 4, 6));
  CHECK(folder.schedule("b") == "0 x 1 by a from 0, 4 x 3 by b from 6: why");
  CHECK(folder.schedule("a") ==
        "0 x 1 by a from 0, 4 x 3 by b from 6: why, 6 x 5 by a from 9: why");
  CHECK(folder.schedule("c") == "0 x 2 by b from 0, 6 x 6 by c from 7: why");
  CHECK(folder.x_at("b", 6) == 2);
  CHECK(folder.x_at("b", 7) == 3);
  CHECK(folder.x_at("a", 9) == 1);
  CHECK(folder.x_at("a", 10) == 5);
}

TEST_CASE("a trial that went on from a checkpoint of its own changes values there") {
  const ScheduleFolder folder(line("a", 3, "a", 3, 1, 2) + line("a", 5, "a", 5, 2, 3));
  CHECK(folder.schedule("a") ==
        "0 x 1 by a from 0, 3 x 2 by a from 3: why, 5 x 3 by a from 5: why");
}

TEST_CASE("replacements that go in a circle are refused") {
  const ScheduleFolder folder(line("a", 3, "b", 9, 1, 2) + line("b", 3, "a", 9, 1, 2));
  CHECK_THROWS_AS(folder.schedule("a"), Error);
}

// ---- What is written of a replacement -----------------------------------------------------------

TEST_CASE("a replacement is a line of events.jsonl, and the trial's params.json") {
  const testing::TemporaryFolder folder;
  SideWork work{1u << 20};
  EventsLog log(folder.path(), story_spec(), work);
  Trial trial;
  trial.number = {1};
  trial.attempt = {2};
  trial.config = pack(Config{{"lr", 0.6}});
  const Packed former = pack(Config{{"lr", 0.5}});
  const std::string reason = "0.1 is among the worst";
  const CheckpointOrigin origin{{2}, 9, {1}};
  const TrialReplaced replaced{trial, {3}, origin, 8, former, reason};
  log.record(replaced, {std::chrono::seconds(1'700'000'000)});
  log.flush();
  work.finish();
  Value told = parse_json(testing::read_text(folder.path() / "events.jsonl"), "events");
  told.erase("time");
  const std::string trials = told.get<std::string>("trial").substr(0, 6);
  CHECK(told.dump() == R"({"event":"replaced","trial":")" + trials +
                           R"(00001","attempt":2,"iteration":8,"donor":")" + trials +
                           R"(00003","from":")" + trials +
                           R"(00002","from_iteration":9,"old":{"lr":0.5},"new":{"lr":0.6},)"
                           R"("reason":"0.1 is among the worst"})");
}

TEST_CASE("results tell the configuration that they came of, and the table the newest") {
  Story story;
  story.write_spec();
  Trial& trial = story.add();
  story.report(trial, {{"acc", 0.5}});
  const Packed former = trial.config;
  trial.config = pack(Config{{"lr", 0.25}, {"model", {{"act", "tanh"}}}, {"batch", 64}});
  const std::string reason = "why";
  const CheckpointOrigin origin{{0}, 1, {1}};
  story.tell(TrialReplaced{trial, {0}, origin, 1, former, reason});
  const std::string params = R"({"lr":0.25,"model":{"act":"tanh"},"batch":64})"
                             "\n";
  CHECK(story.read(trial, "params.json") == params);
  // The last result came of the former configuration, from memory or from the file.
  write_results_csv(story.path() / "results.csv", story.spec(), story.trials(),
                    story.last_results());
  const std::string csv = testing::read_text(story.path() / "results.csv");
  CHECK(csv.find("lr=0.5,model/act=relu") != csv.npos);
  CHECK(csv.find("0.25,tanh,64") != csv.npos);
  CHECK(Analysis::load(story.path()).to_csv() == csv);

  story.set_status(trial, TrialStatus::kPending);
  story.set_status(trial, TrialStatus::kRunning);
  story.report(trial, {{"acc", 0.75}});
  const std::vector<std::string> lines = split_lines(story.read(trial, "result.json"));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("lr=0.5,model/act=relu") != std::string::npos);
  CHECK(lines[1].find("lr=0.25,model/act=tanh") != std::string::npos);
}

TEST_CASE("told again after a restart, a replacement leaves the same files") {
  Story story;
  Trial& trial = story.add();
  story.report(trial, {{"acc", 0.5}});
  const Packed former = trial.config;
  const std::string reason = "why";
  const CheckpointOrigin origin{{0}, 1, {1}};
  trial.config = pack(Config{{"lr", 0.25}, {"model", {{"act", "tanh"}}}, {"batch", 64}});
  story.tell(TrialReplaced{trial, {0}, origin, 1, former, reason});
  const std::string before = story.read(trial, "params.json");

  Story again(story_spec(), &story);
  again.join();
  Trial& same = again.add();  // with the configuration that it began with
  again.report(same, {{"acc", 0.5}});
  same.config = trial.config;
  again.tell(TrialReplaced{same, {0}, origin, 1, former, reason});
  CHECK(again.read(same, "params.json") == before);
}

}  // namespace
}  // namespace tune
