#include "tune/control/attempt_end.h"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <vector>

namespace tune {
namespace {

// Rows: what the scheduler has decided; columns: outcomes, all failures alike.
TEST_CASE("the end of an attempt, by its outcome, the verdict and whether the experiment ends") {
  using enum Ending;
  const std::vector<Outcome> columns = {Outcome::kCompleted, Outcome::kStopped, Outcome::kPaused,
                                        Outcome::kException, Outcome::kLost};
  struct Row {
    Leaving leaving;
    std::optional<StopKind> verdict;
    std::vector<Ending> expected;
  };
  const Row rows[] = {
      // An agent that leaves pauses its trials though nobody decided that.
      {Leaving::kNo, {}, {kCompleted, kStopped, kLost, kFailed, kLost}},
      {Leaving::kNo, StopKind::kPause, {kCompleted, kStopped, kPaused, kFailed, kCannotPause}},
      {Leaving::kNo, StopKind::kStop, {kCompleted, kStopped, kStopped, kFailed, kStopped}},
      {Leaving::kForNow, {}, {kCompleted, kStopped, kPaused, kLost, kLost}},
      {Leaving::kForNow, StopKind::kPause, {kCompleted, kStopped, kPaused, kLost, kLost}},
      {Leaving::kForNow, StopKind::kStop, {kCompleted, kStopped, kStopped, kFailed, kStopped}},
      {Leaving::kForGood, {}, {kCompleted, kStopped, kStopped, kStopped, kStopped}},
      {Leaving::kForGood, StopKind::kPause, {kCompleted, kStopped, kStopped, kStopped, kStopped}},
      {Leaving::kForGood, StopKind::kStop, {kCompleted, kStopped, kStopped, kStopped, kStopped}},
  };
  for (const Row& row : rows) {
    Trial trial;
    trial.verdict = row.verdict;
    trial.judged = 3;
    trial.last = Reported{};
    trial.last->iteration = 3;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      CAPTURE(static_cast<int>(row.leaving));
      CAPTURE(outcome_name(columns[i]));
      CHECK(ending_of(trial, columns[i], row.leaving) == row.expected[i]);
    }
  }
  for (const Outcome outcome : {Outcome::kSignal, Outcome::kExit, Outcome::kHung}) {
    CHECK(ending_of(Trial{}, outcome, Leaving::kNo) == kFailed);
  }
}

TEST_CASE("an attempt that was lost before it got to the judged result was not told to pause") {
  Trial trial;
  trial.verdict = StopKind::kPause;
  trial.judged = 3;
  CHECK(ending_of(trial, Outcome::kLost, Leaving::kNo) == Ending::kLost);
  trial.last = Reported{};
  trial.last->iteration = 2;
  CHECK(ending_of(trial, Outcome::kLost, Leaving::kNo) == Ending::kLost);
}

}  // namespace
}  // namespace tune
