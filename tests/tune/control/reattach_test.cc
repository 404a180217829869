// Machines that outlive their driver, as the controller of the next one takes them back.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/refusal.h"
#include "schedulers/asha.h"
#include "tune/control/scene.h"

namespace tune::testing {
namespace {

using namespace std::chrono_literals;

constexpr AgentNumber kFar{3};

// One machine that has joined with a place for each of two trials, and the drivers that come and go.
struct Reattached : Scene {
  explicit Reattached(Options options = {.num_samples = 2}) : Scene(with_nodes(options)) {
    say(hello());
    ZygoteReady ready;
    ready.trainables = {{"T", true, false}};
    say(ready);
    for (const std::uint32_t trial : {0u, 1u}) say(AttemptStarted{{trial}, {1}, 100});
    take<Launch>();
    take<Apart<SetupExperiment>>();
  }
  static Options with_nodes(Options options) {
    options.nodes_may_join = true;
    return options;
  }
  AgentHello hello(std::uint64_t epoch = 0, std::vector<LiveAttempt> live = {}) const {
    AgentHello hello;
    hello.hostname = "far";
    hello.cpu_units = 2 * kUnit;
    hello.joined = true;
    hello.identity = "join/8/0/far-1";
    hello.epoch = epoch;
    hello.live = std::move(live);
    return hello;
  }
  void say(AgentEvent event) { give(FromAgent{kFar, std::move(event), ++said}); }
  // Another driver takes over.
  void restart(bool keeps = true) {
    DriverStarted event;
    event.epoch = ++epoch_;
    event.num_samples = options_.num_samples;
    event.nodes_may_join = true;
    event.keeps_joined = keeps;
    commands_.clear();
    give(event);
  }
  void come_back(std::vector<LiveAttempt> live) { say(hello(epoch_, std::move(live))); }
  std::uint64_t running() const {
    return controller_.counts()[static_cast<std::size_t>(TrialStatus::kRunning)];
  }
  std::uint64_t said = 0;
};

LiveAttempt live_attempt(std::uint32_t trial, std::uint64_t iteration = 0, bool waits = false,
                 std::uint32_t attempt = 1) {
  return {{trial}, {attempt}, iteration, waits, false};
}

TEST_CASE("an agent that takes part in another experiment is to join anew") {
  Scene scene({.num_samples = 1, .nodes_may_join = true});
  AgentHello hello;
  hello.hostname = "far";
  hello.cpu_units = kUnit;
  hello.joined = true;
  hello.epoch = scene.epoch_;
  hello.experiment = "other";
  scene.give(FromAgent{kFar, hello});
  CHECK(scene.take<Apart<SetupExperiment>>().empty());
  const auto ended = scene.take<Shutdown>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].joins_again);
}

TEST_CASE("what runs on a machine that comes back goes on, and is kept there") {
  Reattached scene;
  scene.say(scene.report(0, 3, 0.5));
  scene.restart();
  CHECK(scene.running() == 2);
  CHECK(scene.controller_.nodes().is_away(kFar));
  CHECK(scene.unsettled_.empty());
  CHECK(scene.story_.back() == "driver 2");  // nobody has left
  scene.say(scene.report(0, 4, 0.6));  // it was told while there was no driver
  scene.come_back({live_attempt(0, 4), live_attempt(1)});
  const auto setups = scene.take<Apart<SetupExperiment>>();
  REQUIRE(setups.size() == 1);
  CHECK(setups[0]->keep ==
        std::vector{attempt_key({0}, {1}), attempt_key({1}, {1})});
  CHECK(scene.take<Continue>().empty());
  CHECK_FALSE(scene.controller_.nodes().is_away(kFar));
  CHECK(scene.running() == 2);
  CHECK(scene.controller_.trials()[0].attempt == AttemptNumber{1});
  CHECK(scene.controller_.trials()[0].last->iteration == 4);
  scene.end(1, Outcome::kCompleted);  // of another agent's number: not its
  CHECK(scene.running() == 2);
}

TEST_CASE("a driver says whom it waits for") {
  const auto is_told = [](const Scene& scene, const std::string& text) {
    return std::ranges::count(scene.notices_, text) == 1;
  };
  Reattached scene;
  scene.restart();
  CHECK(is_told(scene, "machines that had joined: 1 are waited for, 2 trials run there"));
  Scene own({.num_samples = 1});
  AgentHello hello = scene.hello();
  hello.own = true;
  own.give(FromAgent{kFar, hello});
  DriverStarted event;
  event.epoch = 2;
  event.num_samples = 1;
  event.keeps_joined = true;
  own.give(event);
  CHECK(is_told(own, "the agent of the driver before this one is waited for, 0 trials run there"));
}

TEST_CASE("a machine that is away gets no trial, and no other gets its trials before it is lost") {
  Reattached scene({.num_samples = 3});
  scene.restart();
  AttemptEnded ended;
  ended.attempt = {1};
  scene.say(ended);
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  CHECK(scene.take<Launch>().empty());
  scene.join(AgentNumber{4});
  CHECK(scene.take<Launch>().at(0).trial == TrialNumber{2});
  CHECK(scene.status(1) == TrialStatus::kRunning);
  scene.give(AgentLost{kFar, "it has said nothing for 60 s"});
  const auto again = scene.take<Launch>();
  REQUIRE(again.size() == 1);
  CHECK(again[0].trial == TrialNumber{1});
  CHECK(again[0].attempt == AttemptNumber{2});
  CHECK(scene.unsettled_ ==
        std::map<TrialNumber, AttemptNumber>{{TrialNumber{1}, AttemptNumber{1}}});
}

TEST_CASE("a verdict that was journaled and perhaps not told is told to a trial that waits for it") {
  Reattached scene({.num_samples = 2, .scheduler = asha({.max_t = 9, .grace_period = 3})});
  scene.say(scene.report(0, 3, 0.5, true));
  REQUIRE(scene.take<Continue>().size() == 1);
  scene.restart();
  SUBCASE("where it waits") {
    scene.come_back({live_attempt(0, 3, true), live_attempt(1)});
    const auto said = scene.take<Continue>();
    REQUIRE(said.size() == 1);
    CHECK(said[0].trial == TrialNumber{0});
    CHECK(said[0].until.value == 9);
    CHECK_FALSE(said[0].save);
  }
  SUBCASE("not where it has gone on: there it would run past its next milestone") {
    scene.come_back({live_attempt(0, 3, false), live_attempt(1)});
    CHECK(scene.take<Continue>().empty());
  }
  SUBCASE("not again by the driver that has told it") {
    scene.say(scene.report(0, 4, 0.6, true));
    CHECK(scene.take<Continue>().size() == 1);
    scene.come_back({live_attempt(0, 4, true), live_attempt(1)});
    CHECK(scene.take<Continue>().empty());
  }
  SUBCASE("and by each driver, as the one before may have been killed too") {
    scene.restart();
    scene.say(scene.hello(2, {live_attempt(0, 3, true), live_attempt(1)}));  // late, to the second
    CHECK(scene.take<Continue>().empty());
    scene.come_back({live_attempt(0, 3, true), live_attempt(1)});
    CHECK(scene.take<Continue>().size() == 1);
  }
}

TEST_CASE("an order to stop is told again, unless it is there") {
  Reattached scene({.num_samples = 2, .scheduler = asha({.max_t = 3, .grace_period = 1})});
  scene.say(scene.report(0, 3, 0.5, true));
  REQUIRE(scene.take<StopAttempt>().size() == 1);
  scene.restart();
  LiveAttempt stopped = live_attempt(0, 3, true);
  SUBCASE("unless") {
    stopped.has_order = true;
    scene.come_back({stopped, live_attempt(1)});
    CHECK(scene.take<StopAttempt>().empty());
  }
  SUBCASE("again") {
    scene.come_back({stopped, live_attempt(1)});
    CHECK(scene.take<StopAttempt>().at(0).kind == StopKind::kStop);
  }
}

TEST_CASE("a launch that never arrived is lost, and costs its trial nothing") {
  Reattached scene;
  scene.restart();
  scene.come_back({live_attempt(0)});
  CHECK(scene.story_.back() ==
        "1.1 lost: the driver before this one ended before it began");
  const auto again = scene.take<Launch>();
  REQUIRE(again.size() == 1);
  CHECK(again[0].trial == TrialNumber{1});
  CHECK(again[0].attempt == AttemptNumber{2});
  CHECK(scene.controller_.trials()[1].failures == 0);
}

TEST_CASE("an attempt that the journal does not know is ended before its place is given away") {
  Reattached scene({.num_samples = 3});
  scene.give(AgentLost{kFar, "it has said nothing for 60 s"});
  scene.restart();
  scene.said = 40;
  scene.come_back({live_attempt(0, 5), live_attempt(2, 1, false, 4)});
  const auto setups = scene.take<Apart<SetupExperiment>>();
  REQUIRE(setups.size() == 1);
  CHECK(setups[0]->keep.empty());
  ZygoteReady ready;
  ready.trainables = {{"T", true, false}};
  scene.say(ready);
  CHECK(scene.take<Launch>().empty());
  AttemptEnded ended;
  ended.attempt = {1};
  ended.outcome = Outcome::kLost;
  scene.say(ended);
  CHECK(scene.unsettled_ ==
        std::map<TrialNumber, AttemptNumber>{{TrialNumber{0}, AttemptNumber{1}}});
  CHECK(scene.take<Launch>().empty());
  ended.trial = {2};
  ended.attempt = {4};
  scene.say(ended);
  CHECK(scene.take<Launch>().size() == 2);
}

TEST_CASE("a number that an attempt had which the journal has lost is not given again") {
  Reattached scene({.num_samples = 2});
  scene.give(AgentLost{kFar, "it has said nothing for 60 s"});
  scene.restart();
  scene.said = 40;
  scene.come_back({live_attempt(0, 5, false, 7)});
  CHECK(scene.controller_.trials()[0].attempt == AttemptNumber{7});
}

TEST_CASE("where words of a machine are missing its attempts do not go on") {
  Reattached scene;
  scene.restart();
  scene.said += 3;  // the journal's end was lost with these
  scene.say(scene.report(0, 9, 0.5));
  CHECK(scene.running() == 0);
  CHECK_FALSE(scene.controller_.trials()[0].last.has_value());
  scene.come_back({live_attempt(0, 9), live_attempt(1)});
  CHECK(scene.take<Apart<SetupExperiment>>().at(0)->keep.empty());
  CHECK(scene.take<Launch>().empty());
}

TEST_CASE("nothing is kept where all trials were being ended, or by a driver of before") {
  Reattached scene;
  SUBCASE("interrupted") {
    scene.give(InterruptRequested{2});
    scene.restart();
  }
  SUBCASE("of before") { scene.restart(false); }
  CHECK(scene.running() == 0);
  CHECK(scene.story_.back() == "far left: the driver before this one has ended");
}

TEST_CASE("a greeting to a driver before that comes late does not make a node of its agent") {
  Reattached scene;
  scene.give(AgentLost{kFar, "it has said nothing for 60 s"});
  scene.restart();
  scene.restart();
  scene.say(scene.hello(2));
  CHECK(scene.controller_.nodes().empty());
  scene.say(scene.hello(3));
  CHECK(scene.controller_.nodes().contains(kFar));
}

}  // namespace
}  // namespace tune::testing
