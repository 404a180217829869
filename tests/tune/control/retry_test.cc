// Steps that are done again, after an error or a lost attempt, as schedulers see them.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::Scene;

// Writes down what it is told, in a book that outlives it.
class RetryWitness : public TrialScheduler {
 public:
  explicit RetryWitness(std::vector<std::string>* book) : book_(book) {}
  void configure(const Objective& objective) override { objective_ = objective; }
  Objective objective() const override { return objective_; }
  Milestone add_trial(TrialNumber) override {
    book_->push_back("add");
    return {"time_total_s", 10};
  }
  Decision result(TrialNumber, const ResultView& result) override {
    book_->push_back(fmt::format("result {}", result.iteration()));
    const bool is_late = result.number("time_total_s").value_or(0) >= 10;
    if (is_late) return Decision::stop("it had its time");
    return Decision::go_on({"time_total_s", 10});
  }
  void end_trial(TrialNumber, TrialEnd end, const Reported*) override {
    book_->push_back(end == TrialEnd::kError ? "error" : "end");
  }
  std::vector<std::string> status_lines() const override { return {}; }
  std::string save() const override { return {}; }
  void restore(std::string_view) override {}

 private:
  std::vector<std::string>* book_;
  Objective objective_;
};

TEST_CASE("for its scheduler a retried trial takes part anew, and ends once more") {
  std::vector<std::string> book;
  Scene scene({.num_samples = 1, .scheduler = scheduler<RetryWitness>(&book)});
  scene.join();
  scene.give_report(0, 1, 0.5);
  scene.end(0, Outcome::kException, "step: no");
  scene.start(true);
  scene.join();
  scene.give_report(0, 1, 0.5);
  scene.give_report(0, 2, 0.5);
  scene.end(0, Outcome::kCompleted);
  CHECK(book == std::vector<std::string>{"add", "result 1", "error", "add", "result 2", "end"});
}

TEST_CASE("a trial that was stopped by time does not run on because a lost attempt was slower") {
  std::vector<std::string> book;
  Scene scene({.num_samples = 1, .scheduler = scheduler<RetryWitness>(&book)});
  scene.join();
  CHECK(scene.take<Launch>().back().until == Milestone{"time_total_s", 10});
  Reported slow = scene.report(0, 1, 0.5, true);
  slow.time_total = std::chrono::seconds(11);
  scene.give(FromAgent{{}, slow});
  REQUIRE(scene.take<StopAttempt>().size() == 1);  // which the driver does not live to send
  scene.start();
  scene.join();
  CHECK(scene.take<Launch>().back().until == Milestone{"training_iteration", 1});
  Reported fast = scene.report(0, 1, 0.5, false);
  fast.time_total = std::chrono::seconds(2);
  scene.give(FromAgent{{}, fast});
  CHECK(scene.take<StopAttempt>().size() == 1);
  scene.end(0, Outcome::kStopped);
  CHECK(scene.status(0) == TrialStatus::kTerminated);
  CHECK(book == std::vector<std::string>{"add", "result 1", "end"});
}

}  // namespace
}  // namespace tune
