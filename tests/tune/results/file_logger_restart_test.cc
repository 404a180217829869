// The files of trials after a driver was killed: another one has its state, or none, and is told
// the records again.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/refusal.h"
#include "file_calls.h"
#include "skip.h"
#include "tune/results/file_logger.h"
#include "tune/spec/experiment_identity.h"
#include "tune/story.h"

namespace tune {
namespace {

void tell_all(Story& story) {
  Trial& a = story.add();
  story.report(a, {{"a", 1}});
  story.flush();
  Trial& b = story.add({{"lr", 0.25}});
  story.report(a, {{"a", 2}, {"b", "x"}});
  story.fail(a, "step: no luck", true);
  story.report(b, {{"a", 3}}, true);
  story.flush();
  story.set_status(a, TrialStatus::kRunning);
  story.cut(a, 1);
  story.report(a, {{"a", 4}});
  story.fail(a, "step: no luck again", false);
  story.flush();
}

TEST_CASE("told again from the beginning, the same bytes stand in the files") {
  const char* files[] = {"params.json", "result.json", "progress.csv", "error.txt"};
  Story story;
  tell_all(story);
  // Leftovers of a killed driver, and files that belong to others.
  const std::filesystem::path first = story.directory(story.trials()[0]);
  std::vector<std::string> before;
  for (const Trial& trial : story.trials()) {
    for (const char* file : files) before.push_back(story.read(trial, file));
  }
  AppendFile(first / "result.json", false).write("{\"half");
  AppendFile(first / "progress.csv", false).write("1,2");
  AppendFile(first / "stdout", true).write("hello\n");
  std::filesystem::create_directory(first / "checkpoint_000001");

  Story again(story_spec(), &story);
  again.join();
  tell_all(again);
  std::vector<std::string> after;
  for (const Trial& trial : again.trials()) {
    for (const char* file : files) after.push_back(again.read(trial, file));
  }
  CHECK(before == after);
  CHECK(testing::read_text(first / "stdout") == "hello\n");
  CHECK(std::filesystem::exists(first / "checkpoint_000001"));
}

using Step = std::function<void(Story&)>;

// Results, turns, failures, cuts and new columns in an order in which each meets each.
std::vector<Step> steps_of_a_life() {
  std::vector<Step> steps;
  const auto report = [&](std::size_t trial, Result result) {
    steps.push_back([=](Story& story) { story.report(story.trials()[trial], result); });
    steps.push_back([](Story& story) { story.flush(); });
  };
  const auto cut = [&](std::size_t trial, std::uint64_t iteration) {
    steps.push_back([=](Story& story) { story.cut(story.trials()[trial], iteration); });
  };
  steps.push_back([](Story& story) { story.join(); });
  steps.push_back([](Story& story) { story.add(); });
  for (int i = 1; i <= 3; ++i) report(0, {{"a", i}, {"text", "two\nlines, \"quoted\""}});
  steps.push_back([](Story& story) { story.add({{"lr", 0.25}}); });
  report(1, {{"a", 1}});
  steps.push_back([](Story& story) { story.fail(story.trials()[0], "step: no luck", true); });
  cut(0, 2);
  report(0, {{"a", 30}});
  report(0, {{"a", 40}, {"new", 1.5}});
  report(1, {{"a", 2}});
  cut(0, 1);
  steps.push_back([](Story& story) { story.set_status(story.trials()[0], TrialStatus::kRunning); });
  report(0, {{"a", 200}});
  steps.push_back([](Story& story) { story.fail(story.trials()[0], "step: again", true); });
  cut(1, 0);
  report(1, {{"b", 1}});
  report(0, {{"a", 300}});
  return steps;
}

std::vector<std::string> all_files(const Story& story) {
  std::vector<std::string> texts;
  for (const char* trial : {"_00000", "_00001"}) {
    for (const char* file : {"params.json", "result.json", "progress.csv", "error.txt"}) {
      const auto id = trial_id(experiment_id_of(story.spec()), TrialNumber{0});
      const auto path = story.path() / (id.substr(0, id.find('_')) + trial) / file;
      texts.push_back(std::filesystem::exists(path) ? read_file(path) : "<not there>");
    }
  }
  return texts;
}

TEST_CASE("saved at any point, killed at any later one, restored and told on: the same bytes") {
  const std::vector<Step> steps = steps_of_a_life();
  Story undisturbed(story_spec(), Story::Node::kJoinsLater);
  for (const Step& step : steps) step(undisturbed);
  undisturbed.flush();
  const std::vector<std::string> wanted = all_files(undisturbed);

  for (std::size_t saved = 0; saved <= steps.size(); ++saved) {
    for (std::size_t killed = saved; killed <= steps.size(); ++killed) {
      CAPTURE(saved);
      CAPTURE(killed);
      Story story(story_spec(), Story::Node::kJoinsLater);
      for (std::size_t i = 0; i < saved; ++i) steps[i](story);
      const std::string state = story.logger().save().get();
      for (std::size_t i = saved; i < killed; ++i) steps[i](story);

      Story again(story_spec(), &story);
      again.is_muted = true;  // until the state of the trials is what it was
      for (std::size_t i = 0; i < saved; ++i) steps[i](again);
      again.is_muted = false;
      again.logger().restore(state);
      // A replay is one turn, and so are the events after it.
      again.is_replay = true;
      for (std::size_t i = saved; i < killed; ++i) steps[i](again);
      again.is_replay = false;
      again.flush();
      for (std::size_t i = killed; i < steps.size(); ++i) steps[i](again);
      again.flush();
      const std::vector<std::string> found = all_files(again);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CAPTURE(i);
        CHECK(found[i] == wanted[i]);
      }
    }
  }
}

TEST_CASE(
    "results that a replay tells, and cuts later, are not looked for in files that were cut") {
  const auto after_the_save = [](Story& story) {
    Trial& a = story.trials()[0];
    story.report(a, {{"a", 4}});
    story.flush();
    story.report(story.trials()[1], {{"text", std::string(9u << 20, 'x')}});  // more than is held
    story.flush();
    story.fail(a, "step: no luck", true);
    story.cut(a, 2);
    story.flush();
    story.set_status(a, TrialStatus::kRunning);
    story.cut(a, 1);  // it starts at an older checkpoint, as the newest is damaged
    story.flush();
  };
  Story story;
  Trial& a = story.add();
  for (int i = 1; i <= 3; ++i) story.report(a, {{"a", i}});
  story.report(story.add(), {{"text", "short"}});
  story.flush();
  const std::string state = story.logger().save().get();
  after_the_save(story);

  Story again(story_spec(), &story);
  again.is_muted = true;
  Trial& same = again.add();
  for (int i = 1; i <= 3; ++i) again.report(same, {{"a", i}});
  again.report(again.add(), {{"text", "short"}});
  again.is_muted = false;
  again.logger().restore(state);
  again.is_replay = true;
  after_the_save(again);
  again.is_replay = false;
  again.report(same, {{"a", 20}});
  const std::vector<std::string> lines = split_lines(again.read(same, "result.json"));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("\"a\":1,") != std::string::npos);
  CHECK(lines[1].find("\"a\":20,") != std::string::npos);
  CHECK(split_lines(again.read(again.trials()[1], "result.json")).size() == 2);
}

TEST_CASE("a file that lost what was saved is not gone on with") {
  Story story;
  Trial& trial = story.add();
  story.report(trial, {{"a", 1}});
  const std::string state = story.logger().save().get();
  std::filesystem::remove(story.directory(trial) / "result.json");
  Story again(story_spec(), &story);
  again.is_muted = true;
  Trial& same = again.add();
  again.is_muted = false;
  again.logger().restore(state);
  again.report(same, {{"a", 2}});
  CHECK_THROWS_WITH_AS(again.flush(), doctest::Contains("result.json: it has 0 bytes and had"),
                       Error);
}

TEST_CASE("a result that was never told again is gone after a replay") {
  Story story;
  Trial& trial = story.add();
  story.report(trial, {{"a", 1}});
  story.flush();
  Story again(story_spec(), &story);
  again.join();
  again.add();
  again.flush();
  CHECK_FALSE(std::filesystem::exists(story.directory(trial) / "result.json"));
  CHECK_FALSE(std::filesystem::exists(story.directory(trial) / "progress.csv"));
}

TEST_CASE("what drivers left that were killed while they wrote params.json is written anew") {
  Story story;
  const std::filesystem::path directory = story.directory(story.add());
  story.flush();
  const std::string whole = read_file(directory / "params.json");
  std::ofstream(directory / "params.json") << whole.substr(0, 5);
  std::ofstream(directory / "params.json.tmp-12") << whole;
  Story again(story_spec(), &story);
  again.join();
  again.add();
  again.flush();
  CHECK(read_file(directory / "params.json") == whole);
  CHECK_FALSE(std::filesystem::exists(directory / "params.json.tmp-12"));
}

TEST_CASE("params.json is written in its place where a worker made the trial's folder first") {
  const Story story;  // its folder
  std::filesystem::create_directory(story.directory(Trial{}));
  std::set<std::string> renamed;
  const auto log = [&] {
    Story logged(story_spec(), &story);
    logged.join();
    logged.add();
    logged.flush();
  };
  const auto note = [&](const testing::FileCall& call) {
    if (call.kind == testing::FileCall::Kind::kRename) renamed.insert(call.target.filename());
    return true;
  };
  if (testing::watch_file_calls_of(log, story.path(), note) == testing::Watched::kNotTraced) {
    return testing::skip("processes may not be traced here");
  }
  CHECK_HAS(read_file(story.directory(Trial{}) / "params.json"), "\"lr\":0.5");
  CHECK_FALSE(renamed.contains("params.json"));  // which it was, without a flush
}

}  // namespace
}  // namespace tune
