// Orders of users: those that are obeyed, their effect on schedulers, and a resume's memory of
// them.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "schedulers/asha.h"
#include "schedulers/hyperband.h"
#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::Scene;

UserOrdered order(OrderKind kind, std::uint32_t trial = 0, std::string text = {}) {
  UserOrdered event;
  event.kind = kind;
  event.trial = TrialNumber{trial};
  event.user = "ada";
  event.text = std::move(text);
  event.ticket = 7;
  return event;
}

UserOrdered addition(const Config& config) {
  UserOrdered event = order(OrderKind::kAdd);
  event.config = pack(config);
  return event;
}

UserOrdered samples(std::int64_t number) {
  UserOrdered event = order(OrderKind::kNumSamples);
  event.num_samples = number;
  return event;
}

// The outcome of an order.
OrderAnswer give(Scene& scene, const UserOrdered& event) {
  scene.answers_.clear();
  scene.give(event);
  REQUIRE(scene.answers_.size() == 1);
  CHECK(scene.answers_.front().ticket == 7);
  return scene.answers_.front();
}

void obeyed(Scene& scene, const UserOrdered& event, const std::string& text) {
  const OrderAnswer answer = give(scene, event);
  CHECK(answer.is_done);
  CHECK(answer.text == text);
}

// A refusal changes nothing.
void refused(Scene& scene, const UserOrdered& event, const std::string& text) {
  const std::string before = scene.controller_.save();
  const std::size_t records = scene.records_.size();
  const ExperimentTime now = scene.now_;
  scene.now_ -= std::chrono::milliseconds(1);  // the time is in the state
  const OrderAnswer answer = give(scene, event);
  scene.now_ = now;
  CHECK_FALSE(answer.is_done);
  CHECK(answer.text == text);
  CHECK(scene.controller_.save() == before);
  CHECK(scene.records_.size() == records);
}

// Writes down what it is told, in a book that outlives it.
class Witness : public TrialScheduler {
 public:
  explicit Witness(std::vector<std::string>* book) : book_(book) {}
  void configure(const Objective& objective) override { objective_ = objective; }
  Objective objective() const override { return objective_; }
  Milestone add_trial(TrialNumber trial) override {
    book_->push_back(fmt::format("add {}", trial.value));
    return {};
  }
  Decision result(TrialNumber, const ResultView&) override { return Decision::go_on({}); }
  void end_trial(TrialNumber trial, TrialEnd end, const Reported*) override {
    constexpr const char* kNames[] = {"completed", "stopped", "error"};
    book_->push_back(fmt::format("{} {}", kNames[static_cast<int>(end)], trial.value));
  }
  std::vector<std::string> status_lines() const override { return {}; }
  std::string save() const override { return {}; }
  void restore(std::string_view) override {}

 private:
  std::vector<std::string>* book_;
  Objective objective_;
};

using Book = std::vector<std::string>;

// ---- Stop ---------------------------------------------------------------------------------------

TEST_CASE("a trial that a user stops saves, ends as stopped and frees its place") {
  Book book;
  Scene scene({.num_samples = 3, .cpus = 2, .scheduler = scheduler<Witness>(&book)});
  scene.join();
  scene.take<Launch>();
  scene.give_report(0, 1, 0.5);
  obeyed(scene, order(OrderKind::kStop, 0, "too slow"), "trial 0 saves and ends");
  const auto stops = scene.take<StopAttempt>();
  REQUIRE(stops.size() == 1);
  CHECK(stops.front().kind == StopKind::kStop);
  CHECK(stops.front().grace == std::chrono::seconds(30));  // a step may never end
  scene.saved(0, 1);
  scene.end(0, Outcome::kStopped);
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  CHECK(scene.controller_.trials()[0].reason == "stopped by ada: too slow");
  CHECK(scene.take<Launch>().size() == 1);  // trial 2, in its place
  CHECK(book == Book{"add 0", "add 1", "stopped 0", "add 2"});
}

TEST_CASE("a trial that a user stops is stopped, however its attempt ends") {
  for (const Outcome outcome : {Outcome::kException, Outcome::kLost, Outcome::kPaused,
                                Outcome::kSignal, Outcome::kStopped}) {
    Scene scene({.num_samples = 1, .cpus = 1, .max_failures = 3});
    scene.join();
    scene.give_report(0, 1, 0.5);
    scene.give(order(OrderKind::kStop));
    scene.end(0, outcome, "a cause");
    CHECK(scene.status(0) == TrialStatus::kTerminated);
    CHECK(scene.controller_.trials()[0].failures == 0);
    CHECK(scene.controller_.phase() == Phase::kFinished);
  }
}

TEST_CASE("a trial that completes before it can be stopped has completed") {
  Scene scene({.num_samples = 1, .cpus = 1});
  scene.join();
  scene.give(order(OrderKind::kStop));
  scene.give_report(0, 1, 0.5, false, true);
  scene.end(0, Outcome::kCompleted);
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  CHECK_FALSE(scene.controller_.trials()[0].was_stopped);
}

TEST_CASE("a stop outlives the driver that took it") {
  Scene scene({.num_samples = 1, .cpus = 1});
  scene.join();
  scene.give_report(0, 1, 0.5);
  scene.give(order(OrderKind::kStop));
  scene.start();
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  CHECK(scene.controller_.phase() == Phase::kFinished);
}

TEST_CASE("a stop by a user leaves asha's rungs as they are") {
  Scene scene(
      {.num_samples = 3, .cpus = 3, .scheduler = asha({.max_t = 9, .reduction_factor = 3})});
  scene.join();
  scene.give_report(0, 1, 0.5, true);
  scene.give_report(1, 1, 0.6, true);
  const std::vector<std::string> lines = scene.controller_.scheduler_lines();
  scene.give(order(OrderKind::kStop, 1));
  scene.end(1, Outcome::kStopped);
  CHECK(scene.controller_.scheduler_lines() == lines);  // 0.6 counts on, once
}

// ---- Pause --------------------------------------------------------------------------------------

TEST_CASE("a trial that a user pauses keeps no place, and the sweep waits for it alone") {
  Book book;
  Scene scene({.num_samples = 2, .cpus = 1, .scheduler = scheduler<Witness>(&book)});
  scene.join();
  scene.take<Launch>();
  scene.give_report(0, 1, 0.5);
  obeyed(scene, order(OrderKind::kPause, 0, "the GPU is needed"),
         "trial 0 saves after its step and stays PAUSED until tune unpause");
  const auto stops = scene.take<StopAttempt>();
  REQUIRE(stops.size() == 1);
  CHECK(stops.front().kind == StopKind::kPause);
  CHECK(stops.front().grace == Duration{});  // a step of an hour is worth waiting for
  scene.saved(0, 1);
  scene.end(0, Outcome::kPaused);
  CHECK(scene.status(0) == TrialStatus::kPaused);
  REQUIRE(scene.take<Launch>().size() == 1);
  scene.give_report(1, 1, 0.5, false, true);
  scene.end(1, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kRunning);
  CHECK(scene.controller_.waits_for_user());
  CHECK(scene.notices_ ==
        std::vector<std::string>{"the sweep waits for trials that a user has paused: 0 (tune "
                                 "unpause)"});
  obeyed(scene, order(OrderKind::kUnpause), "trial 0 goes on when there is room");
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK(launches.front().restore_iteration == 1);
  CHECK_FALSE(scene.controller_.waits_for_user());
  scene.give_report(0, 2, 0.7, false, true);
  scene.end(0, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kFinished);
  CHECK(book == Book{"add 0", "error 0", "add 1", "completed 1", "add 0", "completed 0"});
}

TEST_CASE("a pause outlives drivers and interrupts, and only its user ends it") {
  Scene scene({.num_samples = 1, .cpus = 1});
  scene.join();
  scene.give_report(0, 1, 0.5);
  scene.saved(0, 1);
  scene.give(order(OrderKind::kPause));
  scene.start();  // the driver was killed before the trial had saved
  CHECK(scene.status(0) == TrialStatus::kPaused);
  scene.join();
  scene.take<Launch>();
  CHECK(scene.take<Launch>().empty());
  scene.give(InterruptRequested{2});
  CHECK(scene.controller_.phase() == Phase::kInterrupted);
  CHECK(scene.status(0) == TrialStatus::kPaused);
  scene.start(true);
  scene.join();
  CHECK(scene.status(0) == TrialStatus::kPaused);
  CHECK(scene.take<Launch>().empty());
  CHECK(scene.controller_.phase() == Phase::kRunning);
  scene.give(order(OrderKind::kUnpause));
  CHECK(scene.take<Launch>().size() == 1);
}

TEST_CASE("a trial that waits, or that fails while it pauses, is paused as well") {
  Scene scene({.num_samples = 2, .cpus = 1, .max_failures = 1});
  scene.join();
  scene.give(order(OrderKind::kPause, 0));
  scene.end(0, Outcome::kException, "step: no");
  CHECK(scene.status(0) == TrialStatus::kPaused);
  CHECK(scene.controller_.trials()[0].failures == 1);
  scene.give(order(OrderKind::kUnpause, 0));
  CHECK(scene.status(0) == TrialStatus::kPending);  // trial 1 runs
  obeyed(scene, order(OrderKind::kPause, 0), "trial 0 stays PAUSED until tune unpause");
  scene.give_report(1, 1, 0.5, false, true);
  scene.end(1, Outcome::kCompleted);
  CHECK(scene.status(0) == TrialStatus::kPaused);
  CHECK(scene.controller_.phase() == Phase::kRunning);
}

TEST_CASE("a trial that goes on before it has paused is started again") {
  Scene scene({.num_samples = 1, .cpus = 1});
  scene.join();
  scene.take<Launch>();
  scene.give_report(0, 1, 0.5);
  scene.give(order(OrderKind::kPause));
  scene.give(order(OrderKind::kUnpause));
  scene.saved(0, 1);
  scene.end(0, Outcome::kPaused);
  CHECK(scene.status(0) == TrialStatus::kRunning);
  CHECK(scene.take<Launch>().size() == 1);
}

TEST_CASE("what a scheduler has decided is the reason again when the user's pause is taken back") {
  Scene scene(
      {.num_samples = 3, .cpus = 1, .scheduler = hyperband({.max_t = 3, .reduction_factor = 3})});
  scene.join();
  scene.give_report(0, 1, 0.5);
  REQUIRE(scene.take<StopAttempt>().size() == 1);
  scene.give(order(OrderKind::kPause));
  scene.give(order(OrderKind::kUnpause));
  scene.saved(0, 1);
  scene.end(0, Outcome::kPaused);
  CHECK(scene.status(0) == TrialStatus::kPaused);
  CHECK(scene.controller_.trials().begin()->reason == "paused by its scheduler");
}

TEST_CASE("a paused trial may be stopped, and the time budget ends a sweep that waits for it") {
  Book book;
  Scene scene({.num_samples = 2,
               .cpus = 2,
               .scheduler = scheduler<Witness>(&book),
               .budget = std::chrono::seconds(100)});
  scene.join();
  for (std::uint32_t trial : {0, 1}) {
    scene.give(order(OrderKind::kPause, trial));
    scene.end(trial, Outcome::kPaused);
  }
  obeyed(scene, order(OrderKind::kStop, 0), "trial 0 is stopped");
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  scene.wait(std::chrono::seconds(200));
  scene.give(DeadlineReached{});
  CHECK(scene.status(1) == TrialStatus::kTerminated);
  CHECK(scene.controller_.phase() == Phase::kFinished);
  CHECK(book == Book{"add 0", "add 1", "error 0", "error 1"});  // each has ended once
}

TEST_CASE("HyperBand halves a bracket without the trial that a user has paused") {
  // 9 trials from iteration 1: three go on. With one held back the other eight are halved.
  Scene scene(
      {.num_samples = 3, .cpus = 3, .scheduler = hyperband({.max_t = 3, .reduction_factor = 3})});
  scene.join();
  scene.give_report(0, 1, 0.1, false);
  scene.give(order(OrderKind::kPause, 0));
  scene.saved(0, 1);
  scene.end(0, Outcome::kPaused);
  for (int i = 0; i < 40 && scene.controller_.counts()[1] > 0; ++i) {
    // The scene makes its controller anew: nothing of it is kept beyond an event.
    for (std::uint32_t number = 0; number < scene.controller_.trials().size(); ++number) {
      if (scene.status(number) != TrialStatus::kRunning) continue;
      const auto& last = scene.controller_.trials()[number].last;
      const std::uint64_t next = last ? last->iteration + 1 : 1;
      scene.give_report(number, next, 0.2 + number, true);
      const auto stops = scene.take<StopAttempt>();
      if (stops.empty()) continue;
      scene.saved(number, next);
      scene.end(number,
                stops.front().kind == StopKind::kPause ? Outcome::kPaused : Outcome::kStopped);
    }
  }
  CHECK(scene.controller_.waits_for_user());
  CHECK(scene.status(0) == TrialStatus::kPaused);
  scene.take<Launch>();
  scene.give(order(OrderKind::kUnpause));
  CHECK(scene.take<Launch>().size() == 1);
}

TEST_CASE("a trial that cannot be saved is not paused while it runs") {
  Scene scene({.num_samples = 2, .cpus = 1, .can_save = false});
  scene.join();
  refused(scene, order(OrderKind::kPause),
          "trial 0: T has no save and load (or is a command without restart in its sweep), so that "
          "the trial would lose what it has done: stop it, and retry it later");
}

// ---- Retry --------------------------------------------------------------------------------------

TEST_CASE("a failed and a stopped trial are retried, a completed one is not") {
  Scene scene({.num_samples = 4, .cpus = 3});
  scene.join();
  scene.give_report(0, 1, 0.5);
  scene.saved(0, 1);
  scene.give(order(OrderKind::kStop, 0));
  scene.end(0, Outcome::kStopped);
  scene.end(1, Outcome::kException, "step: no");
  scene.give_report(2, 1, 0.5, false, true);
  scene.end(2, Outcome::kCompleted);
  scene.take<Launch>();
  obeyed(scene, order(OrderKind::kRetry, 0), "trial 0 goes on when there is room");
  auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK(launches.front().restore_iteration == 1);
  CHECK(launches.front().attempt == AttemptNumber{2});
  obeyed(scene, order(OrderKind::kRetry, 1), "trial 1 goes on when there is room");
  CHECK(scene.controller_.trials()[1].failures == 0);
  CHECK(scene.take<Launch>().size() == 1);
  refused(scene, order(OrderKind::kRetry, 2), "trial 2 has come to its end: nothing is left to do");
  refused(scene, order(OrderKind::kRetry, 3), "trial 3 has not ended: RUNNING");
}

TEST_CASE(
    "a trial that failed while it obeyed its scheduler's stop stops when it is retried, for that "
    "reason") {
  Scene scene({.num_samples = 3, .cpus = 3, .scheduler = asha({.max_t = 9, .grace_period = 1})});
  scene.join();
  for (const std::uint32_t trial : {0, 1, 2}) scene.give_report(trial, 1, 0.9 - 0.2 * trial);
  REQUIRE(scene.take<StopAttempt>().size() >= 1);
  const std::string reason = scene.controller_.trials()[2].reason;
  REQUIRE_FALSE(reason.empty());
  scene.end(2, Outcome::kException, "save: no");
  REQUIRE(scene.status(2) == TrialStatus::kError);
  obeyed(scene, order(OrderKind::kRetry, 2), "trial 2 goes on when there is room");
  CHECK(scene.controller_.trials()[2].reason == reason);
}

TEST_CASE("a trial that asha has stopped is retried up to max_t, and not beyond") {
  Scene scene(
      {.num_samples = 2, .cpus = 2, .scheduler = asha({.max_t = 3, .reduction_factor = 2})});
  scene.join();
  scene.give_report(0, 1, 0.9, true);
  scene.give_report(1, 1, 0.1, true);
  REQUIRE(scene.take<StopAttempt>().size() == 1);
  scene.saved(1, 1);
  scene.end(1, Outcome::kStopped);
  scene.take<Launch>();
  scene.give(order(OrderKind::kRetry, 1));
  REQUIRE(scene.take<Launch>().size() == 1);
  scene.give_report(1, 2, 0.95, true);
  scene.give_report(1, 3, 0.95, true);
  scene.saved(1, 3);
  scene.end(1, Outcome::kStopped);
  refused(scene, order(OrderKind::kRetry, 1),
          "trial 1 has come to its end, the scheduler's max_t 3: nothing is left to do");
}

// ---- Configurations and samples -----------------------------------------------------------------

TEST_CASE("an added configuration is a trial beside those of the searcher") {
  Book book;
  Scene scene({.num_samples = 2, .cpus = 1, .scheduler = scheduler<Witness>(&book)});
  Scene without({.num_samples = 2, .cpus = 1});
  scene.join();
  without.join();
  obeyed(scene, addition({{"x", 0.25}}), R"(trial 1 has it: {"x":0.25})");
  CHECK(scene.controller_.total_trials() == 3);
  const std::uint32_t order_of_trials[] = {0, 1};
  for (const std::uint32_t trial : order_of_trials) {
    scene.give_report(trial, 1, 0.5, false, true);
    scene.end(trial, Outcome::kCompleted);
  }
  without.give_report(0, 1, 0.5, false, true);
  without.end(0, Outcome::kCompleted);
  // The searcher's second configuration is trial 2 here, and the same.
  REQUIRE(scene.controller_.trials().size() == 3);
  CHECK(scene.controller_.trials()[2].config == without.controller_.trials()[1].config);
  CHECK(scene.controller_.trials()[1].is_added);
  scene.give_report(2, 1, 0.5, false, true);
  scene.end(2, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kFinished);
}

TEST_CASE("what an added configuration leaves out is drawn, and differs from trial to trial") {
  Scene scene({.num_samples = 1, .cpus = 9});
  scene.join();
  scene.give(addition({}));
  scene.give(addition({}));
  const auto& trials = scene.controller_.trials();
  REQUIRE(trials.size() == 3);
  CHECK(unpack(trials[1].config).at("x").number() < 1);
  CHECK(trials[1].config != trials[2].config);
  CHECK(trials[1].config != trials[0].config);
}

TEST_CASE("an added configuration with a strange key is refused") {
  Scene scene({.num_samples = 1, .cpus = 1});
  scene.join();
  refused(scene, addition({{"xx", 0.25}}),
          "adding a configuration: there is no 'xx' in config (did you mean 'x'?)");
  UserOrdered broken = addition({});
  broken.config.bytes = "\xc1";
  CHECK_FALSE(give(scene, broken).is_done);
  broken.config = pack(Value(3));
  CHECK_FALSE(give(scene, broken).is_done);
}

TEST_CASE("num_samples may grow, and shrink to what has begun; a resume keeps it") {
  Scene scene({.num_samples = 2, .cpus = 1});
  scene.join();
  obeyed(scene, samples(4), "num_samples is 4 from now on, 4 trials in all");
  CHECK(scene.controller_.total_trials() == 4);
  scene.start();  // the driver was told 2 again
  CHECK(scene.controller_.total_trials() == 4);
  scene.join();
  obeyed(scene, samples(1), "num_samples is 1 from now on, 1 trials in all");
  scene.give_report(0, 1, 0.5, false, true);
  scene.end(0, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kFinished);
}

TEST_CASE("num_samples that do not fit are refused") {
  Scene scene({.num_samples = 3, .cpus = 2});
  scene.join();
  refused(scene, samples(1), "num_samples 1 makes 1 trials in all: 2 have begun already");
  refused(scene, samples(0), "num_samples 0: a sweep that runs takes a number from 1");
  refused(scene, samples(-1), "num_samples -1: a sweep that runs takes a number from 1");
  refused(scene, samples(2'000'000'000),
          "num_samples 2000000000 makes 2000000000 trials in all: at most 1000000000");
}

TEST_CASE("what a resume says of num_samples counts when it says something new") {
  Scene scene({.num_samples = 2, .cpus = 1});
  scene.join();
  scene.give(samples(4));
  scene.options_.num_samples = 6;
  scene.start();
  CHECK(scene.controller_.total_trials() == 6);
}

// ---- Refusals -----------------------------------------------------------------------------------

TEST_CASE("orders that do not fit are refused, and change nothing") {
  Scene scene({.num_samples = 3, .cpus = 2});
  scene.join();
  refused(scene, order(OrderKind::kStop, 9), "there is no trial 9 yet: 2 are there");
  refused(scene, order(OrderKind::kUnpause, 0), "trial 0 is not paused: RUNNING");
  scene.give(order(OrderKind::kStop, 0));
  refused(scene, order(OrderKind::kStop, 0), "trial 0 is being stopped already");
  refused(scene, order(OrderKind::kPause, 0), "trial 0 is being stopped");
  scene.end(0, Outcome::kStopped);
  refused(scene, order(OrderKind::kStop, 0), "trial 0 has ended already: TERMINATED");
  refused(scene, order(OrderKind::kPause, 0), "trial 0 has ended already: TERMINATED");
  refused(scene, order(OrderKind::kUnpause, 0), "trial 0 has ended already: TERMINATED");
  scene.give(order(OrderKind::kPause, 1));
  refused(scene, order(OrderKind::kPause, 1), "trial 1 is paused by a user already");
  scene.give(InterruptRequested{2});
  refused(scene, order(OrderKind::kUnpause, 1), "the experiment is ending: resume it first");
}

TEST_CASE("a trial that its scheduler keeps back is not unpaused, but may be held and let go") {
  Scene scene({.num_samples = 2,
               .cpus = 1,
               .scheduler = asha({.max_t = 4, .reduction_factor = 2, .type = AshaType::kPromote})});
  scene.join();
  scene.give_report(0, 1, 0.5, true);
  scene.saved(0, 1);
  scene.end(0, Outcome::kPaused);
  REQUIRE(scene.status(0) == TrialStatus::kPaused);
  refused(scene, order(OrderKind::kUnpause, 0),
          "trial 0 is paused by its scheduler, which decides when it goes on");
  obeyed(scene, order(OrderKind::kPause, 0), "trial 0 stays PAUSED until tune unpause");
  scene.give_report(1, 1, 0.1, true);
  scene.saved(1, 1);
  scene.end(1, Outcome::kPaused);
  CHECK(scene.controller_.waits_for_user());
  CHECK(scene.status(1) == TrialStatus::kPaused);  // it may go on behind trial 0
  scene.take<Launch>();
  scene.give(order(OrderKind::kUnpause, 0));
  CHECK(scene.take<Launch>().size() == 1);
}

TEST_CASE("a note changes nothing but the account") {
  Scene scene({.num_samples = 1, .cpus = 1});
  scene.join();
  scene.end(0, Outcome::kException, "step: no");
  Scene other({.num_samples = 2, .cpus = 1});
  other.join();
  const std::string before = encoded(other.controller_.trials()[0]);
  obeyed(other, order(OrderKind::kNote, 0, "looks odd"), "trial 0: noted");
  CHECK(encoded(other.controller_.trials()[0]) == before);
  CHECK(other.story_.back() == "ada: note 0 looks odd");
}

}  // namespace
}  // namespace tune
