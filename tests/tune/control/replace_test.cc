// A scheduler lets trials go on from others' checkpoints: what the controller makes of it.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/refusal.h"
#include "tune/control/heard.h"
#include "tune/control/scene.h"
#include "tune/control/trial_book.h"

namespace tune {
namespace {

using testing::Heard;
using testing::result_of;
using testing::Scene;

// Judges every second iteration: a value below 0 lets the trial go on from trial 0 with x = 5, one
// of 2 asks for a save, one of 3 yields, one of 4 pauses, to begin again as trial 0 with x = 6.
class Replacing : public TrialScheduler {
 public:
  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  Milestone add_trial(TrialNumber) override { return stop_after(0); }
  Decision result(TrialNumber, const ResultView& result) override {
    const double value = result.number("m").value_or(0);
    const Milestone until = stop_after(result.iteration());
    if (result.iteration() % 2 == 1) return Decision::go_on(until);
    if (value < 0) return Decision::replace({{0}, {{"x", 5}}}, until, "below 0");
    Decision decision = Decision::go_on(until);
    decision.save = value == 2;
    decision.yields = value == 3;
    return value == 4 ? Decision::pause("later") : decision;
  }
  Milestone resume_trial(TrialNumber) override { return {"training_iteration", 8}; }
  std::optional<ResumedAs> resumed_as(TrialNumber trial) override {
    if (trial.value != 1) return std::nullopt;
    return ResumedAs{{{0}, {{"x", 6}}}, "all have come"};
  }
  void end_trial(TrialNumber, TrialEnd, const Reported*) override {}
  std::optional<TrialNumber> choose(const Candidates& candidates) const override {
    return candidates.first_pending().value_or(candidates.front().trial);
  }
  bool pauses() const override { return true; }
  bool replaces() const override { return true; }
  std::vector<std::string> status_lines() const override { return {"Replacing"}; }
  std::string save() const override { return encoded(std::string("replacing")); }
  void restore(std::string_view state) override { decoded<std::string>(state); }

 private:
  static Milestone stop_after(std::uint64_t iteration) {
    return {"training_iteration", static_cast<double>(iteration - iteration % 2 + 2)};
  }
  Objective objective_;
};

Scene::Options two_places(std::int64_t samples = 2) {
  Scene::Options options;
  options.num_samples = samples;
  options.scheduler = scheduler<Replacing>();
  return options;
}

// Trial 0 has reported 2 iterations and is saved there.
Scene begun(const Scene::Options& options) {
  Scene scene(options);
  scene.join();
  scene.give_report(0, 1, 0.5);
  scene.give_report(0, 2, 2, true);
  scene.saved(0, 2);
  scene.take<Launch>();
  return scene;
}

UserOrdered trial_order(OrderKind kind) {
  UserOrdered event;
  event.kind = kind;
  event.trial = TrialNumber{1};
  event.user = "ada";
  return event;
}

CheckpointOrigin origin_of(const Launch& launch) {
  REQUIRE(launch.origin.has_value());
  return *launch.origin;
}

}  // namespace

TEST_CASE("a verdict to go on may ask for a save") {
  Scene scene(two_places());
  scene.join();
  scene.give_report(0, 1, 2);
  CHECK(scene.take<Continue>().empty());
  scene.give_report(0, 2, 2, true);
  auto told = scene.take<Continue>();
  REQUIRE(told.size() == 1);
  CHECK(told[0].save);
  scene.give_report(1, 2, 1, true);
  told = scene.take<Continue>();
  REQUIRE(told.size() == 1);
  CHECK_FALSE(told[0].save);
}

TEST_CASE("a replaced trial leaves its state and goes on from the donor's, by its own count") {
  Scene scene = begun(two_places());
  const Packed before = scene.controller_.trials()[1].config;
  for (std::uint64_t i = 1; i < 4; ++i) scene.give_report(1, i, 0.1);
  scene.give_report(1, 4, -1, true);
  const auto stops = scene.take<StopAttempt>();
  REQUIRE(stops.size() == 1);
  CHECK(stops[0].kind == StopKind::kLeave);
  CHECK(scene.status(1) == TrialStatus::kRunning);
  scene.end(1, Outcome::kStopped);
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].attempt.value == 2);
  CHECK(origin_of(launches[0]) == CheckpointOrigin{{0}, 2, {1}});
  CHECK(launches[0].restore_iteration == 4);
  CHECK(unpack(launches[0].config).dump() == R"({"x":5})");
  CHECK(launches[0].until == Milestone{"training_iteration", 6});
  const Trial& trial = scene.controller_.trials()[1];
  CHECK(trial.last->iteration == 4);
  CHECK(trial.replacements == 1);
  CHECK_FALSE(trial.verdict.has_value());
  CHECK(before != trial.config);
  CHECK(scene.story_.back() == "1.1 stopped: ");
  scene.give_report(1, 5, 0.2);
  CHECK(scene.results_.back() == std::tuple(1u, 5u, false));
}

TEST_CASE("the donor's checkpoint stays until the replaced trial has one of its own") {
  Scene scene = begun(two_places());
  scene.give_report(1, 2, -1, true);
  scene.end(1, Outcome::kStopped);
  scene.give_report(0, 3, 0.6);
  scene.give_report(0, 4, 2.5, true);  // the best so far
  scene.saved(0, 4);
  CHECK(scene.removed_.empty());  // keep is 1, and 2 is needed
  // Its attempt is lost: it begins again there.
  scene.give_report(1, 3, 0.3);
  scene.end(1, Outcome::kLost);
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 2);
  CHECK(origin_of(launches[1]) == CheckpointOrigin{{0}, 2, {1}});
  CHECK(launches[1].restore_iteration == 2);
  CHECK(scene.cuts_ == std::vector<std::uint64_t>{2});
  scene.give_report(1, 3, 0.3);
  scene.give_report(1, 4, 0.3, true);
  scene.saved(1, 4);
  CHECK(scene.removed_ == std::vector<std::uint64_t>{2});
  scene.end(1, Outcome::kLost);
  const auto own = scene.take<Launch>();
  REQUIRE(own.size() == 1);
  CHECK_FALSE(own[0].origin.has_value());
  CHECK(own[0].restore_iteration == 4);
}

TEST_CASE("a driver that is killed between a replacement and its launch changes nothing") {
  Scene scene = begun(two_places());
  scene.give_report(1, 2, -1, true);
  scene.start();  // of the next driver: the attempts of this one are lost
  scene.join();
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 2);
  CHECK(launches[1].trial == TrialNumber{1});
  CHECK(origin_of(launches[1]) == CheckpointOrigin{{0}, 2, {1}});
  CHECK(launches[1].restore_iteration == 2);
  CHECK(unpack(launches[1].config).dump() == R"({"x":5})");
  CHECK(scene.controller_.trials()[1].replacements == 1);
}

TEST_CASE("what the trial that leaves still says and saves is of no use") {
  Scene scene = begun(two_places());
  scene.give_report(1, 1, 0.1);
  scene.give_report(1, 2, -1, true);
  scene.saved(1, 2);  // by the checkpoint frequency, say
  CHECK(scene.removed_ == std::vector<std::uint64_t>{2});
  scene.give_report(1, 3, 0.1);
  CHECK(scene.controller_.trials()[1].last->iteration == 2);
  scene.end(1, Outcome::kSignal, "killed by signal 11 (SIGSEGV)");
  CHECK(scene.controller_.trials()[1].failures == 0);
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].origin.has_value());
}

TEST_CASE("the restart point of a donor that has not saved its own yet is passed on") {
  Scene::Options options = two_places(3);
  options.cpus = 3;
  Scene scene = begun(options);
  scene.give_report(1, 2, -1, true);
  scene.end(1, Outcome::kStopped);
  scene.give_report(2, 2, -1, true);
  scene.end(2, Outcome::kStopped);
  auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 2);
  CHECK(origin_of(launches[1]) == CheckpointOrigin{{0}, 2, {1}});
  scene.give_report(0, 4, 2.5, true);
  scene.saved(0, 4);
  CHECK(scene.removed_.empty());
  for (const std::uint32_t trial : {1u, 2u}) {
    scene.give_report(trial, 4, 0.1, true);
    scene.saved(trial, 4);
  }
  CHECK(scene.removed_ == std::vector<std::uint64_t>{2});  // with the last that needed it
}

TEST_CASE("a donor without a checkpoint: the trial goes on as it is, and the user is told once") {
  Scene scene(two_places());
  scene.join();
  for (const std::uint64_t iteration : {2, 4}) {
    scene.give_report(1, iteration, -1, true);
    const auto told = scene.take<Continue>();
    REQUIRE(told.size() == 1);
    CHECK(told[0].until.value == static_cast<double>(iteration) + 2);
  }
  CHECK(scene.take<StopAttempt>().empty());
  CHECK(scene.controller_.trials()[1].replacements == 0);
  CHECK(scene.notices_ ==
        std::vector<std::string>{"the scheduler lets a trial go on from another one that has no "
                                 "checkpoint: such a trial goes on as it is"});
}

TEST_CASE("a trial yields only while another one waits for room") {
  Scene scene(two_places(2));
  scene.join();
  scene.give_report(0, 2, 3, true);
  CHECK(scene.take<Continue>().size() == 1);
  CHECK(scene.take<StopAttempt>().empty());

  Scene crowded(two_places(3));
  crowded.join();
  crowded.give_report(0, 2, 3, true);
  const auto told = crowded.take<StopAttempt>();
  REQUIRE(told.size() == 1);
  CHECK(told[0].kind == StopKind::kPause);
  crowded.saved(0, 2);
  crowded.take<Launch>();
  crowded.end(0, Outcome::kPaused);
  const auto launches = crowded.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].trial == TrialNumber{2});
  CHECK(crowded.status(0) == TrialStatus::kPaused);
}

TEST_CASE("a paused trial may go on from another one's checkpoint") {
  Scene scene = begun(two_places());
  scene.give_report(1, 2, 4, true);
  scene.saved(1, 2);
  scene.end(1, Outcome::kPaused);
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK(origin_of(launches[0]) == CheckpointOrigin{{0}, 2, {1}});
  CHECK(launches[0].restore_iteration == 2);
  CHECK(unpack(launches[0].config).dump() == R"({"x":6})");
  CHECK(launches[0].until.value == 8);
}

TEST_CASE("the time budget ends a trial that was about to go on") {
  Scene::Options options = two_places();
  options.budget = std::chrono::seconds(1);
  Scene scene = begun(options);
  scene.give_report(1, 2, -1, true);
  scene.wait(std::chrono::seconds(2));
  scene.give(DeadlineReached{});
  scene.end(1, Outcome::kStopped);
  CHECK(scene.status(1) == TrialStatus::kTerminated);
  REQUIRE(scene.controller_.trials()[1].checkpoints.size() == 1);  // for a retry
}

// Trial 1 is told to leave its state, and its user stops it before it has left.
void stop_while_it_leaves(Scene& scene) {
  scene.give_report(1, 2, -1, true);
  scene.give(trial_order(OrderKind::kStop));
  scene.end(1, Outcome::kStopped);
  CHECK(scene.status(1) == TrialStatus::kTerminated);
  scene.take<Launch>();
  scene.give(trial_order(OrderKind::kRetry));
}

TEST_CASE("a trial that is stopped while it leaves its state begins with the other when retried") {
  Scene scene = begun(two_places());
  stop_while_it_leaves(scene);
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK(origin_of(launches[0]) == CheckpointOrigin{{0}, 2, {1}});
  CHECK(launches[0].restore_iteration == 2);
  CHECK(unpack(launches[0].config).dump() == R"({"x":5})");
}

TEST_CASE("with a driver of an older build it begins anew, as its donor's checkpoint is gone") {
  Scene scene = begun(two_places());
  DriverStarted older;
  older.epoch = 2;
  older.num_samples = 2;
  older.keeps_origins = false;
  scene.give(older);
  scene.join();
  scene.take<Launch>();
  stop_while_it_leaves(scene);
  const auto launches = scene.take<Launch>();
  REQUIRE(launches.size() == 1);
  CHECK_FALSE(launches[0].origin);
  CHECK(launches[0].restore_iteration == 0);
}

TEST_CASE("after an interrupt a trial that was about to go on begins there") {
  Scene scene = begun(two_places());
  scene.give_report(1, 2, -1, true);
  scene.give(InterruptRequested{});
  scene.end(1, Outcome::kStopped);
  CHECK(scene.status(1) == TrialStatus::kPending);
}

TEST_CASE("a scheduler that replaces trials is refused with a trainable that cannot save") {
  Scene::Options options = two_places();
  options.can_save = false;
  Scene scene(options);
  scene.join();
  CHECK(scene.controller_.phase() == Phase::kFailed);
  CHECK_HAS(scene.controller_.failure(),
            "scheduler: it lets trials go on from the checkpoints of others, but T has no save and "
            "load");
}

// ---- The book -----------------------------------------------------------------------------------

TEST_CASE("of two that need a checkpoint the last one lets it go") {
  Heard heard;
  TrialBook book(heard.out, {"m", Mode::kMax, 0}, 1);
  const auto save = [&](Trial& trial, std::uint64_t iteration) {
    CheckpointSaved saved;
    saved.trial = trial.number;
    saved.attempt = AttemptNumber{1};
    saved.iteration = iteration;
    book.take_checkpoint(trial, saved);
  };
  for (int i = 0; i < 3; ++i) {
    Trial& trial = book.add(pack(Config{}), {});
    book.begin_attempt(trial, {AgentNumber{0}, {}});
    book.take_result(trial, result_of(trial, 1, 0));
  }
  Trial& donor = book.at({0});
  save(donor, 1);
  for (const std::uint32_t other : {1u, 2u}) {
    CHECK(book.replace(book.at({other}), {0}, pack(Config{{"x", 1}}), "why"));
  }
  save(donor, 2);
  book.take_result(donor, result_of(donor, 3, 1));  // the best
  save(donor, 3);
  REQUIRE(donor.checkpoints.size() == 2);
  CHECK(donor.checkpoints[0].iteration == 1);
  CHECK(donor.checkpoints[1].iteration == 3);
  book.finish(book.at({1}), TrialStatus::kError);  // it may be tried again
  save(book.at({2}), 2);
  CHECK(donor.checkpoints.size() == 2);

  PackWriter out;
  book.save(out);
  TrialBook restored(heard.out, {"m", Mode::kMax, 0}, 1);
  PackReader in(out.bytes());
  restored.restore(in);
  restored.set_status(restored.at({1}), TrialStatus::kPending);
  restored.finish(restored.at({1}), TrialStatus::kTerminated);
  CHECK(restored.at({0}).checkpoints.size() == 1);
  CHECK_FALSE(book.replace(donor, {9}, pack(Config{}), "no such trial"));
}

}  // namespace tune
