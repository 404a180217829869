#include "tune/results/trial_stories.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tune/results/trial_folders.h"
#include "view/folder.h"

namespace tune {
namespace {

using testing::event;

TrialStories told(const std::string& lines) {
  TrialStories stories;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    stories.add(event_from_line(lines.substr(at, end - at), "e"));
    at = end + 1;
  }
  return stories;
}

TEST_CASE("what became of a trial is told by its events") {
  const TrialStories stories =
      told(event("attempt_started", 3) + event("failure", 3, R"(,"failures":2)") +
           event("attempt_ended", 3, R"(,"outcome":"exception")") + event("attempt_started", 3) +
           event("rung", 3, R"(,"milestone":9)") +
           event("verdict", 3, R"(,"verdict":"stop","reason":"rank 7 of 9")") +
           event("attempt_ended", 3, R"(,"outcome":"stopped")") +
           event("trial_ended", 3, R"(,"status":"TERMINATED")") + event("attempt_started", 4) +
           event("attempt_ended", 4, R"(,"outcome":"paused")"));
  REQUIRE(stories.find(3) != nullptr);
  CHECK(stories.find(3)->status == TrialStatus::kTerminated);
  CHECK(stories.find(3)->failures == 2);
  CHECK(stories.find(3)->was_stopped);
  CHECK(stories.find(3)->rung == 9);
  CHECK(stories.find(3)->reason == "rank 7 of 9");
  CHECK(stories.find(3)->started == 100.5);
  CHECK(stories.find(3)->ended == 100.5);
  CHECK(stories.find(4)->status == TrialStatus::kPaused);
  CHECK(stories.find(0) == nullptr);
  CHECK(stories.running().empty());
}

TEST_CASE("a new driver, and the end of a run, leave nothing running") {
  for (const char* kind : {"driver_started", "experiment_ended"}) {
    const TrialStories stories =
        told(event("attempt_started", 1) + R"({"time":9,"event":")" + kind + "\"}\n");
    CHECK(stories.find(1)->status == TrialStatus::kPending);
    CHECK(stories.running().empty());
  }
}

TEST_CASE("a trial that a user has paused is PAUSED, whatever its attempts do, until it goes on") {
  const std::string paused = event("attempt_started", 1) + event("order", 1, R"(,"order":"pause")");
  CHECK(told(paused).find(1)->status == TrialStatus::kRunning);
  for (const char* outcome : {"paused", "lost", "exception"}) {
    const std::string end =
        event("attempt_ended", 1, R"(,"outcome":")" + std::string(outcome) + '"');
    CHECK(told(paused + end).find(1)->status == TrialStatus::kPaused);
    CHECK(told(paused + end + event("order", 1, R"(,"order":"unpause")")).find(1)->status ==
          TrialStatus::kPending);
  }
  const std::string driver = R"({"time":9,"event":"driver_started"})"
                             "\n";
  CHECK(told(paused + driver).find(1)->status == TrialStatus::kPaused);
  const std::string note = event("order", 1, R"(,"order":"note","text":"odd")");
  CHECK(told(paused + driver + note).find(1)->status == TrialStatus::kPaused);
  const std::string ended = event("trial_ended", 2, R"(,"status":"TERMINATED")");
  const TrialStories retried = told(ended + event("order", 2, R"(,"order":"retry")"));
  CHECK(retried.find(2)->status == TrialStatus::kPending);
  CHECK(retried.find(2)->ended == 0);
}

TEST_CASE("a driver that waits for machines leaves running what they run") {
  const TrialStories stories =
      told(event("attempt_started", 1) + event("attempt_started", 2) +
           R"({"time":9,"event":"driver_started","epoch":2,"keeps":true})" + "\n" +
           event("attempt_ended", 2, R"(,"outcome":"lost")"));
  CHECK(stories.find(1)->status == TrialStatus::kRunning);
  CHECK(stories.find(2)->status == TrialStatus::kPending);
}

TEST_CASE("the numbers of ids") {
  CHECK(number_of_id("2f1e0_00003") == 3u);
  CHECK(number_of_id("2f1e0_123456") == 123456u);
  for (const char* id :
       {"", "x", "2f1e0_", "2f1e0_3", "2f1e0_0000x", "2f1e0_99999999999", "2f1e0_-0001"}) {
    CAPTURE(id);
    CHECK(number_of_id(id) == std::nullopt);
  }
}

TEST_CASE("trials' folders are listed by number, and others are passed over") {
  const testing::TemporaryFolder folder;
  for (const char* name : {"2f1e0_00011", "2f1e0_00002", "store", "latest_00001", "2f1e0_x"}) {
    std::filesystem::create_directory(folder.path() / name);
  }
  const TrialFolders found = list_trial_folders(folder.path());
  CHECK(found.prefix == "2f1e0_");
  CHECK(found.numbers == std::vector<std::uint32_t>{2, 11});
  CHECK_FALSE(found.error);
  CHECK(list_trial_folders(folder.path() / "none").error);
}

}  // namespace
}  // namespace tune
