#include "tune/export/trial_run.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/event_file.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "tune/export/hparams.h"
#include "view/folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

struct Run {
  testing::TemporaryFolder folder;
  fs::path file = folder.path() / "run" / "events.out.tfevents.0000000000.tune";

  // Hands over results with these values, as from the first line on.
  void tell(const std::vector<double>& values, TrialStatus end = TrialStatus::kRunning) const {
    TrialRun run(folder.path() / "run");
    if (run.is_new()) run.begin(Config{{"lr", 0.5}}, "2f1e0_00000", 100);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ScalarsEvent event;
      event.add("loss", values[i]);
      const double time = 200 + static_cast<double>(i);
      run.result(i + 1, event.event(time, i + 1), time);
    }
    if (end != TrialStatus::kRunning) run.end(end, values.size(), 300);
    run.flush();
  }
  std::string bytes() const { return testing::read_text(file); }

  // The file as TensorBoard sees it: values by step, and what stands for the outcome.
  struct Seen {
    std::map<std::uint64_t, std::string> steps;
    std::vector<std::string> outcomes;
    std::size_t restarts = 0;
    std::size_t starts = 0;
  };
  Seen seen() const {
    Seen seen;
    const std::string text = bytes();
    const std::size_t end = for_each_record(text, [&](std::string_view event) {
      const EventHead head = head_of_event(event);
      if (head.is_restart) {
        ++seen.restarts;
        seen.steps.erase(seen.steps.lower_bound(head.step), seen.steps.end());
      } else if (head.step > 0) {
        CHECK(seen.steps.emplace(head.step, event).second);
      } else if (event.find(kHparamsEnd) != event.npos) {
        seen.outcomes.emplace_back(event);
      } else if (event.find(kHparamsStart) != event.npos) {
        ++seen.starts;
      }
    });
    CHECK(end == text.size());
    return seen;
  }
};

TEST_CASE("each result stands once, however often it is told") {
  Run run;
  run.tell({3, 2});
  const std::string first = run.bytes();
  run.tell({3, 2});
  CHECK(run.bytes() == first);
  run.tell({3, 2, 1}, TrialStatus::kTerminated);
  run.tell({3, 2, 1}, TrialStatus::kTerminated);
  const Run::Seen seen = run.seen();
  CHECK(seen.steps.size() == 3);
  CHECK(seen.restarts == 0);
  CHECK(seen.starts == 1);
  REQUIRE(seen.outcomes.size() == 1);
  CHECK(seen.outcomes[0].ends_with(hparams_end(TrialStatus::kTerminated)));
  CHECK(run.bytes().starts_with(first));
}

TEST_CASE("a file that was cut anywhere becomes what it was") {
  Run run;
  run.tell({3, 2, 1}, TrialStatus::kTerminated);
  const std::string whole = run.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    fs::resize_file(run.file, size);
    run.tell({3, 2, 1}, TrialStatus::kTerminated);
    REQUIRE(run.bytes() == whole);
  }
}

TEST_CASE("steps that were done again after a restore take the place of the former ones") {
  Run run;
  run.tell({5, 4, 3, 2});
  run.tell({5, 4, 3.5, 2.5, 1});
  Run expected;
  expected.tell({5, 4, 3.5, 2.5, 1});
  CHECK(run.seen().steps == expected.seen().steps);
  CHECK(run.seen().restarts == 1);
  const std::string before = run.bytes();
  run.tell({5, 4, 3.5, 2.5, 1});
  CHECK(run.bytes() == before);
}

TEST_CASE("a trial that ends with fewer steps than it had loses the others") {
  Run run;
  run.tell({5, 4, 3, 2});
  run.tell({5, 4}, TrialStatus::kError);
  CHECK(run.seen().steps.size() == 2);
}

TEST_CASE("a failed trial that is tried again has its last outcome alone") {
  Run run;
  run.tell({5}, TrialStatus::kError);
  run.tell({5, 4}, TrialStatus::kTerminated);
  const Run::Seen seen = run.seen();
  CHECK(seen.steps.size() == 2);
  REQUIRE(seen.outcomes.size() == 1);
  CHECK(seen.outcomes[0].ends_with(hparams_end(TrialStatus::kTerminated)));
}

TEST_CASE("a folder that cannot be made is refused with its path") {
  Run run;
  testing::write_text(run.folder.path() / "run", "a file");
  CHECK_HAS(testing::refusal([&] { run.tell({1}); }, ErrorCode::kIo), "run");
}

}  // namespace
}  // namespace tune
