#include "tune/control/verdicts.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "tune/control/heard.h"

namespace tune {
namespace {

using testing::result_of;

// Decides by the metric: below 0 stop, above 1 pause; writes down what it is told.
class Diary : public TrialScheduler {
 public:
  explicit Diary(std::vector<std::string>& lines) : lines_(lines) {}
  void configure(const Objective&) override {}
  Objective objective() const override { return {}; }
  Milestone add_trial(TrialNumber) override { return {"t", 1}; }
  Milestone resume_trial(TrialNumber) override { return {"t", 50}; }
  Decision result(TrialNumber, const ResultView& result) override {
    lines_.push_back(std::to_string(result.iteration()));
    const double value = result.number("m").value_or(0);
    if (value < 0) return Decision::stop("too low");
    if (value > 1) return Decision::pause("high enough");
    return Decision::go_on({"t", static_cast<double>(result.iteration() + 1)});
  }
  void end_trial(TrialNumber, TrialEnd end, const Reported* last) override {
    lines_.push_back("end " + std::to_string(static_cast<int>(end)) + " at " +
                     std::to_string(last == nullptr ? 0 : last->iteration));
  }
  std::vector<std::string> status_lines() const override { return {}; }
  std::string save() const override { return {}; }
  void restore(std::string_view) override {}

 private:
  std::vector<std::string>& lines_;
};

struct VerdictsScene {
  std::vector<std::string> told;
  Verdicts verdicts{std::make_unique<Diary>(told)};
  Trial trial;

  Verdicts::Ruling report(std::uint64_t iteration, double metric, bool waiting = true,
                          bool final = false) {
    Reported report = result_of(trial, iteration, metric);
    report.waiting = waiting;
    report.final = final;
    trial.last = report;
    return verdicts.rule(trial, report);
  }
};

TEST_CASE("a report is judged once; a waiting worker hears the milestone") {
  VerdictsScene scene;
  const auto first = scene.report(1, 0.5);
  CHECK(first.is_first);
  CHECK_FALSE(first.done);
  REQUIRE(first.answer.has_value());
  CHECK(std::get<Continue>(*first.answer).until == Milestone{"t", 2});
  CHECK_FALSE(scene.report(2, 0.5, false).answer.has_value());  // does not wait
  CHECK(scene.trial.until == Milestone{"t", 3});                // but is known
  CHECK(scene.told == std::vector<std::string>{"1", "2"});
}

TEST_CASE("steps done again get the recorded verdict, and the scheduler hears nothing") {
  VerdictsScene scene;
  scene.report(1, 0.5);
  const auto stop = scene.report(2, -1);
  CHECK(stop.done);
  CHECK(std::get<StopAttempt>(*stop.answer).kind == StopKind::kStop);
  CHECK(scene.trial.reason == "too low");
  // The stop got lost; from the start again, and better than before.
  const auto again = scene.report(1, 0.9, false);
  CHECK_FALSE(again.is_first);
  CHECK_FALSE(again.done);
  const auto redone = scene.report(2, 0.9);
  CHECK(redone.done);
  CHECK(std::get<StopAttempt>(*redone.answer).kind == StopKind::kStop);
  CHECK(scene.told == std::vector<std::string>{"1", "2"});
}

TEST_CASE("a faster attempt does not overtake a stop that was lost on the way") {
  VerdictsScene scene;  // whose milestones are points in time
  scene.report(1, 0.5);
  scene.report(2, -1);
  // By the time at which it was stopped, it would not wait at step 2 this time.
  CHECK(Verdicts::until(scene.trial) == Milestone{"training_iteration", 2});
  scene.report(1, 0.5, false);
  const auto there = scene.report(2, 0.5, false);  // whatever it reports under training_iteration
  CHECK(there.done);
  CHECK(std::get<StopAttempt>(*there.answer).kind == StopKind::kStop);
  CHECK(scene.report(3, 0.5, false).done);  // was under way
  CHECK(scene.told == std::vector<std::string>{"1", "2"});
}

TEST_CASE("a slower attempt that waits early goes on to the step at which it was stopped") {
  VerdictsScene scene;
  scene.report(1, 0.5);
  scene.report(2, -1);
  const auto early = scene.report(1, 0.5);
  CHECK_FALSE(early.done);
  CHECK(std::get<Continue>(*early.answer).until == Milestone{"training_iteration", 2});
}

TEST_CASE("a stop that failed in its end stands when the trial is tried again; a pause does not") {
  for (const bool stops : {true, false}) {
    VerdictsScene scene;
    scene.report(1, stops ? -1 : 2);
    scene.verdicts.end(scene.trial, TrialEnd::kError);
    CHECK(scene.trial.verdict.has_value() == stops);
  }
}

TEST_CASE("a last result is not judged, and is when it is not the last any more") {
  VerdictsScene scene;
  const auto last = scene.report(1, -1, false, true);
  CHECK(last.done);
  CHECK_FALSE(last.answer.has_value());
  CHECK(scene.told.empty());
  CHECK(std::get<StopAttempt>(*scene.report(1, -1).answer).kind == StopKind::kStop);
}

TEST_CASE("what is owed to a trial that is saved up to its last result") {
  struct Case {
    double metric;
    bool final;
    std::uint64_t saved;
    Owed owed;
  };
  const Case cases[] = {{0.5, true, 1, Owed::kCompletion}, {-1, false, 1, Owed::kStop},
                        {2, false, 1, Owed::kPause},       {0.5, false, 1, Owed::kNothing},
                        {0.5, true, 0, Owed::kNothing},    {-1, false, 0, Owed::kNothing}};
  for (const Case& c : cases) {
    CAPTURE(c.metric);
    VerdictsScene scene;
    scene.report(1, c.metric, true, c.final);
    if (c.saved > 0) scene.trial.checkpoints.push_back({c.saved, {}, {}, {}, {}});
    CHECK(Verdicts::owed(scene.trial) == c.owed);
  }
  VerdictsScene none;
  none.trial.verdict = StopKind::kStop;
  CHECK(Verdicts::owed(none.trial) == Owed::kNothing);  // it never reported
}

TEST_CASE("an end clears the verdict and gives the scheduler the last result") {
  VerdictsScene scene;
  scene.report(1, -1);
  scene.verdicts.end(scene.trial, TrialEnd::kStopped);
  CHECK_FALSE(scene.trial.verdict.has_value());
  CHECK(scene.told == std::vector<std::string>{"1", "end 1 at 1"});
  scene.verdicts.resume(scene.trial);
  CHECK(scene.trial.until == Milestone{"t", 50});
}

}  // namespace
}  // namespace tune
