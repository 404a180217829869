// Scenarios of the controller: events in, commands and records out.
#include "tune/control/controller.h"

#include <doctest/doctest.h>

#include <memory>

#include <fmt/format.h>

#include "core/error.h"
#include "core/refusal.h"
#include "schedulers/asha.h"
#include "schedulers/hyperband.h"
#include "schedulers/scheduler_spec.h"
#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::in_words;
using testing::Scene;

TEST_CASE("a state of another version or set-up, or a damaged one, is refused") {
  Scene scene({.num_samples = 2});
  scene.join();
  scene.give_report(0, 1, 0.5);
  const std::string state = scene.controller_.save();
  const auto refused = [](const Scene& taker, const std::string& bytes) {
    Controller other(const_cast<Scene&>(taker).setup());
    CHECK_THROWS_AS(other.restore(bytes), Error);
  };
  refused(scene, state.substr(0, state.size() / 2));
  refused(scene, state + "x");
  refused(scene, "\x7f" + state.substr(1));
  refused(Scene({.scheduler = asha({.max_t = 9})}), state);
  // The running trial needs 1 CPU; a node of none cannot have promised it.
  Scene larger({.num_samples = 2});
  larger.options_.request = {.cpu_units = 3 * kUnit};
  refused(larger, state);
}

TEST_CASE("a metric that no trial has reported by max_t ends the experiment, with what there is") {
  for (const bool reported_once : {false, true}) {
    CAPTURE(reported_once);
    Scene scene({.num_samples = 2,
                 .scheduler = asha({.max_t = 3, .grace_period = 1, .reduction_factor = 3}),
                 .metric = "n"});
    scene.join();
    if (reported_once) {
      Reported other = scene.report(1, 1, 0.5);
      other.result = pack(Result{{"n", 0.5}});
      scene.give(FromAgent{{}, other});
    }
    scene.give_report(0, 1, 0.5, true);
    scene.give_report(0, 2, 0.5, true);
    CHECK(scene.controller_.phase() == Phase::kRunning);
    scene.give_report(0, 3, 0.5, true);
    // Another trial has it: this one may yet.
    CHECK((scene.controller_.phase() == Phase::kRunning) == reported_once);
    const std::string why = scene.controller_.failure();
    CAPTURE(why);
    CHECK(testing::has(why, "'n' is in no result so far") == !reported_once);
    CHECK(testing::has(why, "results have: m") == !reported_once);
    CHECK(scene.results_.size() == (reported_once ? 4 : 3));
  }
}

TEST_CASE("one of several metrics that no result has stops no sweep, all of them end it") {
  for (const bool has_one : {false, true}) {
    Scene scene({.num_samples = 1,
                 .scheduler = asha({.max_t = 3, .grace_period = 1, .reduction_factor = 3}),
                 .goals = {{has_one ? "m" : "o"}, {"n"}}});
    scene.join();
    for (std::uint64_t step = 1; step <= 3; ++step) {
      CHECK(scene.controller_.phase() == Phase::kRunning);
      scene.give_report(0, step, 0.5, true);  // of m
    }
    CHECK((scene.controller_.phase() == Phase::kRunning) == has_one);
    CHECK(testing::has(scene.controller_.failure(), "'n' is in no result so far") == !has_one);
    const char* end = "0 stop at 3: reached max_t 3 at iteration 3, without n";
    CHECK((scene.story_.back() == end) == has_one);
  }
}

TEST_CASE("as many trials run as the node has room for, in order, and the next follows an end") {
  Scene scene({.num_samples = 3, .cpus = 2});
  CHECK(scene.take<Launch>().empty());  // no agent yet
  scene.join();
  const auto first = scene.take<Launch>();
  REQUIRE(first.size() == 2);
  CHECK(first[0].trial.value == 0);
  CHECK(first[1].trial.value == 1);
  CHECK(first[0].attempt.value == 1);
  CHECK(first[0].seed != first[1].seed);
  scene.give_report(0, 1, 0.5, false, true);
  scene.end(0, Outcome::kCompleted);
  REQUIRE(scene.take<Launch>().size() == 1);
  scene.end(1, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kRunning);
  scene.end(2, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kFinished);
  CHECK(scene.controller_.counts()[static_cast<int>(TrialStatus::kTerminated)] == 3);
  CHECK(scene.controller_.best_trial()->value == 0);
}

TEST_CASE("messages of an old attempt, a wrong agent and unknown trials change nothing") {
  Scene scene({.num_samples = 1, .max_failures = 3});
  scene.join();
  const Reported late = scene.report(0, 5, 0.9, true);
  scene.end(0, Outcome::kSignal, "killed");
  REQUIRE(scene.controller_.trials()[0].attempt.value == 2);
  scene.take<Launch>();
  scene.give(FromAgent{{}, late});
  CHECK_FALSE(scene.controller_.trials()[0].last.has_value());
  Reported stranger = scene.report(0, 1, 0.5);
  scene.give(FromAgent{AgentNumber{9}, stranger});
  stranger.trial = TrialNumber{77};
  scene.give(FromAgent{{}, stranger});
  AttemptEnded ended;
  ended.attempt = AttemptNumber{1};
  scene.give(FromAgent{{}, ended});
  CHECK_FALSE(scene.controller_.trials()[0].last.has_value());
  CHECK(scene.status(0) == TrialStatus::kRunning);
  CHECK(scene.commands_.size() == 1);  // the set-up of the agent
}

TEST_CASE("what many trials warn of is shown once") {
  Scene scene({.num_samples = 2});
  scene.join();
  scene.notices_.clear();
  for (const char* text : {"no save", "no save", "another", "no save"}) {
    scene.give(FromAgent{{}, Warning{text}});
  }
  CHECK(scene.notices_ == std::vector<std::string>{"no save", "another"});
}

TEST_CASE("asha's verdict reaches a waiting trial, and a stopped one ends") {
  Scene scene({.num_samples = 2,
               .scheduler = asha({.max_t = 9, .grace_period = 1, .reduction_factor = 3})});
  scene.join();
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 2);
  CHECK(launches[0].until == Milestone{"training_iteration", 1});
  scene.give_report(0, 1, 0.5, true);  // an empty rung lets it go on
  const auto verdicts = scene.take<Continue>();
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].until == Milestone{"training_iteration", 3});
  scene.give_report(1, 1, 0.4, true);  // worse than the cut-off 0.5
  const auto stops = scene.take<StopAttempt>();
  REQUIRE(stops.size() == 1);
  CHECK(stops[0].trial.value == 1);
  CHECK(std::get<2>(scene.results_.back()));  // recorded as its last result
  scene.end(1, Outcome::kStopped);
  CHECK(scene.status(1) == TrialStatus::kTerminated);
}

TEST_CASE(
    "a failed attempt is tried again from its last checkpoint and its later results are void") {
  Scene scene({.num_samples = 1, .max_failures = 1});
  scene.join();
  scene.take<Launch>();
  scene.give_report(0, 1, 0.1);
  scene.give_report(0, 2, 0.2);
  scene.saved(0, 2);
  scene.give_report(0, 3, 0.3);
  scene.end(0, Outcome::kSignal, "killed by signal 9 (SIGKILL)");
  const auto again = scene.take<Launch>();
  REQUIRE(again.size() == 1);
  CHECK(again[0].attempt.value == 2);
  CHECK(again[0].restore_iteration == 2);
  CHECK(scene.cuts_ == std::vector<std::uint64_t>{2});
  CHECK(scene.controller_.trials()[0].last->iteration == 2);
  CHECK(*scene.controller_.trials()[0].metric == doctest::Approx(0.2));
  scene.end(0, Outcome::kException, "step: no");
  CHECK(scene.status(0) == TrialStatus::kError);
  CHECK((*scene.controller_.trials()[0].failure)->cause == "step: no");
  CHECK(scene.controller_.phase() == Phase::kFinished);
}

TEST_CASE("a lost attempt is not counted as a failure") {
  Scene scene({.num_samples = 1, .max_failures = 0});
  scene.join();
  scene.end(0, Outcome::kLost);
  CHECK(scene.take<Launch>().size() == 2);
  CHECK(scene.controller_.trials()[0].failures == 0);
}

TEST_CASE("retention keeps the newest and the best checkpoint") {
  Scene scene({.num_samples = 1, .checkpoint = {.frequency = 1, .at_end = true, .keep = 1}});
  scene.join();
  const double metrics[] = {0.1, 0.9, 0.3, 0.4};
  for (std::uint64_t i = 1; i <= 4; ++i) {
    scene.give_report(0, i, metrics[i - 1]);
    scene.saved(0, i);
  }
  // 1 goes when 2 comes; 2 is best and stays; 3 goes when 4 comes.
  CHECK(scene.removed_ == std::vector<std::uint64_t>{1, 3});
  REQUIRE(scene.controller_.trials()[0].checkpoints.size() == 2);
  CHECK(scene.controller_.trials()[0].checkpoints[0].iteration == 2);
}

// Pauses every trial at its first result.
class PauseAtOnce : public TrialScheduler {
 public:
  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  Milestone add_trial(TrialNumber) override { return {"training_iteration", 1}; }
  Decision result(TrialNumber, const ResultView&) override { return Decision::pause("its turn"); }
  void end_trial(TrialNumber, TrialEnd, const Reported*) override {}
  bool pauses() const override { return true; }
  std::vector<std::string> status_lines() const override { return {}; }
  std::string save() const override { return {}; }
  void restore(std::string_view) override {}

 private:
  Objective objective_;
};

TEST_CASE(
    "an attempt that is lost before the result at which an earlier one was to pause is no "
    "failure") {
  Scene scene({.num_samples = 1, .scheduler = scheduler<PauseAtOnce>(), .max_failures = 1});
  scene.join();
  scene.give_report(0, 1, 0.1, true);
  REQUIRE(scene.take<StopAttempt>().size() == 1);
  scene.end(0, Outcome::kSignal);  // before it saved
  REQUIRE(scene.controller_.trials()[0].failures == 1);
  scene.end(0, Outcome::kLost);  // the second attempt, by its node, before any result
  CHECK(scene.controller_.trials()[0].failures == 1);
  CHECK(scene.status(0) == TrialStatus::kRunning);  // the third
  // One that is told to pause and is lost cannot save.
  scene.give_report(0, 1, 0.1, true);
  scene.end(0, Outcome::kLost);
  CHECK(scene.status(0) == TrialStatus::kError);
}

TEST_CASE("a paused trial goes on when another's result lets it, before that one has saved") {
  const AshaOptions options{.max_t = 4, .reduction_factor = 2, .type = AshaType::kPromote};
  Scene scene({.num_samples = 2, .scheduler = asha(options)});
  scene.join();
  CHECK(scene.take<Launch>().size() == 2);
  scene.give_report(0, 1, 0.9, true);
  scene.saved(0, 1);
  scene.end(0, Outcome::kPaused);
  CHECK(scene.status(0) == TrialStatus::kPaused);
  CHECK(scene.take<Launch>().empty());  // one value is too few to promote
  scene.give_report(1, 1, 0.1, true);   // the best of two may go on
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].trial == TrialNumber{0});
  CHECK(launches[0].restore_iteration == 1);
  CHECK(launches[0].until == Milestone{"training_iteration", 2});
  CHECK(scene.status(1) == TrialStatus::kRunning);  // it saves
  scene.saved(1, 1);
  scene.end(1, Outcome::kPaused);
  scene.give_report(0, 2, 0.95, true);
  scene.saved(0, 2);
  scene.end(0, Outcome::kPaused);
  // Nothing runs, none is new and none may go on: all are over.
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  CHECK(scene.status(1) == TrialStatus::kTerminated);
  CHECK(scene.controller_.phase() == Phase::kFinished);
}

TEST_CASE("an interrupt pauses running trials, and a new driver lets them go on") {
  Scene scene({.num_samples = 3});
  scene.join();
  scene.take<Launch>();
  scene.give_report(0, 1, 0.1);
  scene.give(InterruptRequested{2});
  const auto stops = scene.take<StopAttempt>();
  REQUIRE(stops.size() == 2);
  CHECK(stops[0].kind == StopKind::kPause);
  CHECK(stops[0].grace > Duration{});
  scene.saved(0, 1);
  scene.end(0, Outcome::kPaused);
  CHECK(scene.status(0) == TrialStatus::kPaused);
  scene.end(1, Outcome::kLost);  // cannot save
  CHECK(scene.status(1) == TrialStatus::kPending);
  CHECK(scene.controller_.phase() == Phase::kInterrupted);
  CHECK(scene.take<Launch>().empty());

  scene.start();
  scene.join();
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 2);
  CHECK(launches[0].trial.value == 0);
  CHECK(launches[0].restore_iteration == 1);
  CHECK(launches[1].trial.value == 1);
}

TEST_CASE("a new driver ends open attempts as lost and a redone step gets the recorded verdict") {
  Scene scene({.num_samples = 2,
               .cpus = 2,
               .scheduler = asha({.max_t = 9, .grace_period = 1, .reduction_factor = 3})});
  scene.join();
  scene.give_report(0, 1, 0.5, true);
  scene.give_report(1, 1, 0.4, true);  // to be stopped, but the driver dies now
  scene.commands_.clear();
  scene.start();
  CHECK(scene.status(1) == TrialStatus::kPending);
  scene.join();
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 2);
  CHECK(launches[1].attempt.value == 2);
  CHECK(launches[1].until == Milestone{"training_iteration", 1});
  scene.give_report(1, 1, 0.4, true);
  const auto stops = scene.take<StopAttempt>();
  REQUIRE(stops.size() == 1);
  CHECK(stops[0].kind == StopKind::kStop);
  scene.end(1, Outcome::kStopped);
  CHECK(scene.status(1) == TrialStatus::kTerminated);
  // Trial 0 was told to go on to 3: it waits there first.
  CHECK(launches[0].until == Milestone{"training_iteration", 3});
  CHECK(scene.controller_.scheduler_lines()[0] == "Using AsyncHyperBand: num_stopped=1");
}

TEST_CASE("a redone last step is recorded as the last again") {
  Scene scene({.num_samples = 2,
               .cpus = 1,
               .scheduler = asha({.max_t = 2, .grace_period = 1, .reduction_factor = 2})});
  scene.join();
  scene.give_report(0, 1, 0.5, true);
  scene.give_report(0, 2, 0.6, true);  // max_t: to be stopped, but the driver dies now
  CHECK(scene.results_.back() == std::tuple(0u, 2u, true));
  scene.start();
  scene.join();
  scene.give_report(0, 1, 0.5);
  CHECK(scene.results_.back() == std::tuple(0u, 1u, false));
  scene.give_report(0, 2, 0.6, true);
  CHECK(scene.results_.back() == std::tuple(0u, 2u, true));
}

// By max_trial_time, say: done again it takes less time.
TEST_CASE("a last step that is not the last when it is redone is judged then") {
  Scene scene({.num_samples = 2,
               .cpus = 2,
               .scheduler = asha({.max_t = 9, .grace_period = 1, .reduction_factor = 3})});
  scene.join();
  scene.give_report(0, 1, 0.5, true);
  scene.give_report(1, 1, 0.4, false, true);
  CHECK(scene.results_.back() == std::tuple(1u, 1u, true));
  scene.start();
  scene.join();
  scene.commands_.clear();
  scene.give_report(1, 1, 0.4, true);
  CHECK(scene.take<StopAttempt>().size() == 1);  // the worse of two at its rung
  CHECK(scene.results_.back() == std::tuple(1u, 1u, true));
}

TEST_CASE("a trial whose last step is saved takes no step more, however its attempt ends") {
  enum class Way { kNewDriver, kLostAgent, kLostAttempt, kFailure };
  for (const Way way : {Way::kNewDriver, Way::kLostAgent, Way::kLostAttempt, Way::kFailure}) {
    for (const bool stopped : {false, true}) {
      CAPTURE(static_cast<int>(way));
      CAPTURE(stopped);
      Scene scene({.num_samples = 2,
                   .cpus = 1,
                   .scheduler = asha({.max_t = 2, .grace_period = 1, .reduction_factor = 2}),
                   .max_failures = 1});
      scene.join();
      scene.give_report(0, 1, 0.5, true);
      scene.give_report(0, 2, 0.6, stopped, !stopped);  // by the scheduler, or by a stop rule
      scene.saved(0, 2);
      scene.take<Launch>();
      if (way == Way::kNewDriver) scene.start();
      if (way == Way::kLostAgent) scene.give(AgentLost{AgentNumber{0}, "gone"});
      if (way == Way::kLostAttempt) scene.end(0, Outcome::kLost);
      if (way == Way::kFailure) scene.end(0, Outcome::kSignal, "killed");
      CHECK(scene.status(0) == TrialStatus::kTerminated);
      if (way == Way::kNewDriver) scene.join();
      if (way == Way::kLostAgent) scene.join(AgentNumber{1});
      const auto launches = scene.take<Launch>();
      REQUIRE(launches.size() == 1);
      CHECK(launches[0].trial.value == 1);
    }
  }
}

TEST_CASE("nothing begins when the time budget is spent, also before the deadline is told") {
  Scene scene({.num_samples = 5, .cpus = 2, .budget = std::chrono::seconds(10)});
  scene.join();
  REQUIRE(scene.take<Launch>().size() == 2);
  scene.wait(std::chrono::seconds(10));
  scene.end(0, Outcome::kCompleted);  // in the turn in which the deadline comes last
  CHECK(scene.take<Launch>().empty());
  scene.give(DeadlineReached{});
  CHECK(scene.take<StopAttempt>().size() == 1);
  scene.end(1, Outcome::kStopped);
  CHECK(scene.controller_.phase() == Phase::kFinished);
}

TEST_CASE("the time budget stops running trials and ends the others") {
  Scene scene({.num_samples = 5, .cpus = 1, .budget = std::chrono::seconds(10)});
  scene.join();
  CHECK(scene.controller_.next_deadline() == std::chrono::seconds(10));
  scene.give(DeadlineReached{});  // too early: nothing
  CHECK(scene.take<StopAttempt>().empty());
  scene.wait(std::chrono::seconds(10));
  scene.give(DeadlineReached{});
  REQUIRE(scene.take<StopAttempt>().size() == 1);
  CHECK_FALSE(scene.controller_.next_deadline());
  scene.end(0, Outcome::kStopped);
  CHECK(scene.controller_.phase() == Phase::kFinished);
  for (const Trial& trial : scene.controller_.trials()) {
    CHECK(trial.status == TrialStatus::kTerminated);
  }
}

TEST_CASE("fail_fast ends the experiment at the first error") {
  Scene scene({.num_samples = 5, .cpus = 2, .fail_fast = true});
  scene.join();
  scene.end(0, Outcome::kException, "setup: no");
  REQUIRE(scene.take<StopAttempt>().size() == 1);
  scene.end(1, Outcome::kStopped);
  CHECK(scene.controller_.phase() == Phase::kFinished);
  CHECK(scene.status(0) == TrialStatus::kError);
}

TEST_CASE("retrying errored trials gives them their failures back") {
  Scene scene({.num_samples = 1});
  scene.join();
  scene.end(0, Outcome::kException, "step: no");
  CHECK(scene.controller_.phase() == Phase::kFinished);
  scene.start();
  CHECK(scene.controller_.phase() == Phase::kFinished);
  scene.start(true);
  CHECK(scene.controller_.phase() == Phase::kRunning);
  scene.take<Launch>();
  scene.join();
  CHECK(scene.take<Launch>().size() == 1);
}

TEST_CASE("what the zygote cannot offer ends the experiment with the reason") {
  struct Case {
    ZygoteReady ready;
    std::uint32_t frequency;
    std::string expected;
  };
  const Case cases[] = {
      {{"loading x.so: no such file", {}, {}}, 0, "plugin: loading x.so: no such file"},
      {{"", {{"Tt", true, false}}, {}},
       0,
       "trainable: there is no 'T' in /p.so (did you mean 'Tt'?); it has: Tt"},
      {{"", {{"T", false, false}}, {}},
       2,
       "checkpoint/frequency: is 2, but T has no save and load"},
  };
  for (const Case& c : cases) {
    Scene scene({.checkpoint = {.frequency = c.frequency, .at_end = true, .keep = 1}});
    AgentHello hello;
    hello.cpu_units = kUnit;
    scene.give(FromAgent{{}, hello});
    scene.give(FromAgent{{}, c.ready});
    CHECK(scene.controller_.phase() == Phase::kFailed);
    CHECK(scene.controller_.failure().find(c.expected) == 0);
    CHECK_FALSE(scene.controller_.has_ready_node());
    CHECK(scene.take<Launch>().empty());
  }
}

TEST_CASE("a scheduler that pauses is refused with a trainable that cannot save") {
  for (const SchedulerSpec& scheduler : {asha({.type = AshaType::kPromote}), hyperband()}) {
    CAPTURE(scheduler.name());
    Scene scene({.scheduler = scheduler, .can_save = false});
    scene.join();
    CHECK(scene.controller_.phase() == Phase::kFailed);
    CHECK_HAS(scene.controller_.failure(),
              "scheduler: it pauses trials, but T has no save and load");
    CHECK(scene.take<Launch>().empty());
  }
}

TEST_CASE("records tell every attempt, verdict and node once") {
  Scene scene({.num_samples = 2,
               .cpus = 1,
               .scheduler = asha({.max_t = 2, .grace_period = 1, .reduction_factor = 2}),
               .max_failures = 1});
  scene.join();
  AttemptStarted started;
  started.trial = {0};
  started.attempt = {1};
  started.pid = 41;
  scene.give(FromAgent{{}, started});
  scene.give_report(0, 1, 0.5, true);
  scene.saved(0, 1);
  scene.end(0, Outcome::kSignal, "killed by signal 9 (SIGKILL)");
  started.attempt = {2};
  scene.give(FromAgent{{}, started});
  scene.give_report(0, 2, 0.6, true);
  scene.give(AgentLost{AgentNumber{0}, "it was silent for 20 s"});
  scene.join(AgentNumber{1});
  scene.start();  // the third attempt never began
  scene.join();
  scene.give_report(0, 2, 0.6, true);  // the recorded verdict is not told again
  scene.end(0, Outcome::kStopped);
  scene.end(1, Outcome::kCompleted);
  const std::vector<std::string> expected = {
      "driver 1",
      "node joined",
      "0.1 on node at 10.0.0.1:41 from 0",
      "0.1 signal: killed by signal 9 (SIGKILL)",
      "0.2 on node at 10.0.0.1:41 from 1",
      "0 stop at 2: reached max_t 2 at iteration 2",
      "0.2 lost: node node is lost: it was silent for 20 s",
      "node left: it was silent for 20 s",
      "node joined",
      "driver 2",
      "0.3 lost: the driver before this one has ended",
      "node left: the driver before this one has ended",
      "node joined",
      "0.4 stopped: ",
      "1.1 completed: ",
      "finished",
  };
  CHECK(scene.story_ == expected);
}

// Each event reaches one that was restored from the state before it, and one that never was.
TEST_CASE("the same events give the same state, effects and records, also after a restore") {
  Scene scene({.num_samples = 4,
               .scheduler = asha({.max_t = 9, .grace_period = 1, .reduction_factor = 3}),
               .max_failures = 1,
               .checkpoint = {.frequency = 1, .at_end = true, .keep = 1}});
  scene.join();
  scene.give_report(0, 1, 0.5, true);
  scene.saved(0, 1);
  scene.give_report(1, 1, 0.4, true);
  scene.end(1, Outcome::kStopped);
  scene.give_report(2, 1, 0.7, true);
  scene.saved(2, 1);
  scene.give_report(2, 2, 0.8);
  scene.saved(2, 2);
  scene.end(0, Outcome::kSignal, "killed");
  scene.start(true);
  scene.join();
  scene.give_report(2, 3, 0.9, true);
  Controller other(scene.setup());
  ExperimentTime now{};
  std::vector<Command> commands;
  std::vector<std::uint64_t> removed;
  std::vector<std::string> records;
  for (const Event& event : scene.events_) {
    now += std::chrono::milliseconds(1);
    const Effects effects = other.handle(
        now, event, [&](const Record& record) { records.push_back(in_words(record)); });
    for (const auto& [agent, command] : effects.commands) commands.push_back(command);
    for (const RemoveCheckpoint& removal : effects.removals) {
      removed.push_back(removal.checkpoint.iteration);
    }
  }
  CHECK(other.save() == scene.controller_.save());  // trials, scheduler, searcher
  CHECK(other.scheduler_lines() == scene.controller_.scheduler_lines());
  CHECK(records.size() > 15);
  CHECK(records == scene.records_);
  CHECK_FALSE(removed.empty());
  CHECK(removed == scene.removed_);
  REQUIRE(commands.size() == scene.commands_.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    CHECK(encoded(commands[i]) == encoded(scene.commands_[i]));
  }
}

TEST_CASE("an agent is compared with the driver that it speaks to, whatever this build speaks") {
  AgentHello hello;
  hello.hostname = "node";
  hello.cpu_units = kUnit;
  DriverStarted started;
  started.num_samples = 1;
  for (const std::uint32_t driver : {3u, kAgentContract, kAgentContract + 1}) {
    for (const std::uint32_t agent : {3u, kAgentContract, kAgentContract + 1}) {
      CAPTURE(driver);
      CAPTURE(agent);
      Scene scene({});
      started.agent_contract = driver;
      scene.give(started);
      hello.contract = agent;
      scene.give(FromAgent{{}, hello});
      const bool fits = driver == agent;
      CHECK(scene.take<Apart<SetupExperiment>>().size() == (fits ? 1 : 0));
      CHECK((scene.controller_.phase() == Phase::kFailed) == !fits);
      if (fits) continue;
      CHECK_HAS(scene.controller_.failure(), "node node speaks version " + std::to_string(agent));
      CHECK_HAS(scene.controller_.failure(), "this driver version " + std::to_string(driver));
    }
  }
}

}  // namespace
}  // namespace tune
