// ASHA by promotion, rule by rule.
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/refusal.h"
#include "numbers.h"
#include "schedulers/asha.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

using tune::testing::kInfinity;
using tune::testing::kNan;
using Kind = Decision::Kind;

AshaOptions promoting(AshaOptions options) {
  options.type = AshaType::kPromote;
  return options;
}

// A scheduler with the trials that wait for a place, as the controller keeps them.
class Sweep {
 public:
  explicit Sweep(const AshaOptions& options, Mode mode = Mode::kMax)
      : made_(asha(promoting(options)).make()) {
    made_->configure({"m", mode, 7});
  }

  Milestone add(std::uint32_t trial) {
    pending_.insert({trial});
    return made_->add_trial({trial});
  }
  // Reports of a trial that has a place; one that pauses has saved at once.
  Decision report(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    if (!added_.contains(trial)) made_->add_trial({trial});
    added_.insert(trial);
    const Decision decision = made_->result({trial}, testing::report(trial, time, value));
    if (decision.kind == Kind::kPause) paused_.insert({trial});
    if (decision.kind == Kind::kStop) end(trial, time, value, TrialEnd::kStopped);
    return decision;
  }
  std::string verdict(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    const Decision decision = report(trial, time, value);
    return decision.kind == Kind::kContinue ? "continue" : decision.reason;
  }
  void end(std::uint32_t trial, std::uint64_t time, std::optional<double> value, TrialEnd how) {
    const Reported last = testing::report(trial, time, value);
    made_->end_trial({trial}, how, &last);
    paused_.erase({trial});
  }
  void all_report(std::uint64_t time, const std::vector<double>& values) {
    for (std::uint32_t trial = 0; trial < values.size(); ++trial) {
      report(trial, time, values[trial]);
    }
  }
  // The trial that gets a free place; -1: it stays free.
  int chosen() const {
    const Candidates candidates(pending_, paused_, made_->resumed_first());
    if (candidates.empty()) return -1;
    const auto trial = made_->choose(candidates);
    CHECK(made_->choose(candidates) == trial);
    return trial ? static_cast<int>(trial->value) : -1;
  }
  Milestone launch(std::uint32_t trial) {
    pending_.erase({trial});
    if (paused_.erase({trial}) == 0) return {};
    return made_->resume_trial({trial});
  }
  // All that go on one after the other, as long as nothing else happens.
  std::vector<int> promoted() {
    std::vector<int> all;
    for (int next = chosen(); next != -1; next = chosen()) {
      all.push_back(next);
      launch(static_cast<std::uint32_t>(next));
    }
    return all;
  }
  void saves_still(std::uint32_t trial) { paused_.erase({trial}); }
  void has_saved(std::uint32_t trial) { paused_.insert({trial}); }
  TrialScheduler* operator->() { return made_.get(); }

 private:
  std::unique_ptr<TrialScheduler> made_;
  std::set<TrialNumber> pending_;
  std::set<TrialNumber> paused_;
  std::set<std::uint32_t> added_;
};

using Trials = std::vector<int>;

}  // namespace

TEST_CASE("promotion pauses each trial at each rung, and says why") {
  Sweep sweep({.max_t = 9, .reduction_factor = 3});
  CHECK(sweep->pauses());
  CHECK(sweep->resumed_first());
  CHECK(sweep->max_t() == 9.0);
  CHECK(sweep.add(0) == Milestone{"training_iteration", 1});
  CHECK(sweep.verdict(0, 1, 0.5) == "0.5 waits: 1 value is too few to promote one at iteration 1");
  CHECK(sweep.verdict(1, 1, 0.4) ==
        "0.4 waits: 2 values are too few to promote one at iteration 1");
  CHECK(sweep.verdict(2, 1, 0.6) == "0.6 waits for room: among the best 1 of 3 at iteration 1");
  CHECK(sweep.verdict(3, 1, 0.1) == "0.1 waits: not among the best 1 of 4 at iteration 1");
  CHECK(sweep->status_lines() ==
        std::vector<std::string>{
            "Using AsyncHyperBand by promotion: num_stopped=0, num_promoted=0, num_waiting=4",
            "Bracket: Iter 9.000: None | Iter 3.000: None | Iter 1.000: 0.6"});
}

TEST_CASE("promotion gives a place to the best that waits among the first floor(n / factor)") {
  Sweep sweep({.max_t = 9, .reduction_factor = 3});
  sweep.all_report(1, {0.1, 0.5});
  CHECK(sweep.chosen() == -1);  // floor(2 / 3) = 0
  sweep.report(2, 1, 0.3);
  CHECK(sweep.chosen() == 1);  // floor(3 / 3) = 1: 0.5
  CHECK(sweep.launch(1) == Milestone{"training_iteration", 3});
  CHECK(sweep.chosen() == -1);  // 0.5 was promoted, and there is one place
  sweep.report(3, 1, 0.2);
  sweep.report(4, 1, 0.4);
  CHECK(sweep.chosen() == -1);  // floor(5 / 3) = 1
  sweep.report(5, 1, 0.0);
  CHECK(sweep.promoted() == Trials{4});  // floor(6 / 3) = 2: 0.5 and 0.4
}

TEST_CASE("a promoted trial that others overtake gives its place to the next one only by growth") {
  Sweep sweep({.max_t = 9, .reduction_factor = 2});
  sweep.all_report(1, {0.3, 0.2});
  CHECK(sweep.promoted() == Trials{0});  // 1 of 2: 0.3
  sweep.report(2, 1, 0.6);
  CHECK(sweep.promoted() == Trials{2});  // 1 of 3: 0.6
  sweep.report(3, 1, 0.1);
  CHECK(sweep.promoted() == Trials{});  // 2 of 4: 0.6 0.3, both promoted
  sweep.report(4, 1, 0.15);
  sweep.report(5, 1, 0.05);
  CHECK(sweep.promoted() == Trials{1});  // 3 of 6: 0.6 0.3 0.2
}

TEST_CASE("the top rung with a trial to promote goes first, a new trial last") {
  Sweep sweep({.max_t = 27, .reduction_factor = 3});
  sweep.all_report(1, {0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1});
  sweep.add(9);
  CHECK(sweep.chosen() == 0);
  for (std::uint32_t trial : {0u, 1u, 2u}) {
    CHECK(sweep.chosen() == static_cast<int>(trial));
    CHECK(sweep.launch(trial) == Milestone{"training_iteration", 3});
  }
  CHECK(sweep.chosen() == 9);  // the new one
  sweep.all_report(3, {0.91, 0.93, 0.92});
  sweep.report(10, 1, 0.95);
  sweep.report(11, 1, 0.96);
  sweep.report(12, 1, 0.97);
  // 1 of 3 at 3; at 1, with 12 values, the best 4 are 0.97 0.96 0.95 0.9.
  CHECK(sweep.chosen() == 1);
  CHECK(sweep.launch(1) == Milestone{"training_iteration", 9});
  CHECK(sweep.promoted() == Trials{12, 11, 10, 9});
}

TEST_CASE("max_t ends a trial, whether a rung is there or not") {
  for (double max_t : {9.0, 10.0}) {
    CAPTURE(max_t);
    Sweep sweep({.max_t = max_t, .reduction_factor = 3});
    sweep.all_report(1, {0.3, 0.2, 0.1});
    CHECK(sweep.promoted() == Trials{0});
    const auto last = static_cast<std::uint64_t>(max_t);
    CHECK(sweep.verdict(0, last, 0.4) ==
          "reached max_t " + std::to_string(last) + " at iteration " + std::to_string(last));
    CHECK(sweep.chosen() == -1);
    // Its value is there for others, though it waits no more.
    const std::string bracket = sweep->status_lines().at(1);
    CHECK(bracket.find("Iter 9.000: None") != std::string::npos);
  }
}

TEST_CASE("without stop_last_trials the best of the top rung train on to their own end") {
  Sweep sweep({.max_t = 3, .reduction_factor = 3, .stop_last_trials = false});
  CHECK_FALSE(sweep->max_t().has_value());
  sweep.all_report(1, {0.9, 0.8, 0.7, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1});
  CHECK(sweep.promoted() == Trials{0, 1, 2});
  sweep.all_report(3, {0.5, 0.6, 0.7});
  CHECK(sweep.chosen() == 2);
  CHECK(sweep.launch(2) == Milestone{});
  CHECK(sweep.verdict(2, 100, 0.9) == "continue");
}

TEST_CASE("ties go in the order of arrival, and no more of them than there are places") {
  Sweep sweep({.max_t = 9, .reduction_factor = 2});
  sweep.all_report(1, {0.5, 0.5, 0.5, 0.5, 0.5});
  CHECK(sweep.promoted() == Trials{0, 1});
  sweep.report(5, 1, 0.5);
  CHECK(sweep.promoted() == Trials{2});
}

TEST_CASE("under mode min the lowest is promoted") {
  Sweep sweep({.max_t = 9, .reduction_factor = 2}, Mode::kMin);
  sweep.all_report(1, {3, 1, -1, 2});
  CHECK(sweep.promoted() == Trials{2, 1});
  CHECK(sweep->status_lines().at(1) ==
        "Bracket: Iter 8.000: None | Iter 4.000: None | Iter 2.000: None | Iter 1.000: 1");
}

TEST_CASE("nan is stopped, and is a value that others are better than") {
  Sweep sweep({.max_t = 9, .reduction_factor = 2});
  CHECK(sweep.verdict(0, 1, kNan) == "nan is worse than any value at iteration 1");
  CHECK(sweep.report(1, 1, -kInfinity).kind == Kind::kPause);
  CHECK(sweep.promoted() == Trials{1});  // 1 of 2
  CHECK(sweep.report(2, 1, kNan).kind == Kind::kStop);
  CHECK(sweep.report(3, 1, kNan).kind == Kind::kStop);
  CHECK(sweep.promoted() == Trials{});  // 2 of 4: -inf was promoted, and nan never is
  CHECK(sweep->status_lines().at(0) ==
        "Using AsyncHyperBand by promotion: num_stopped=3, num_promoted=1, num_waiting=0");
}

TEST_CASE("a report that skips rungs waits at the highest and has passed the lower ones") {
  Sweep sweep({.max_t = 27, .reduction_factor = 3});
  sweep.report(0, 10, 0.5);
  sweep.report(1, 1, 0.4);
  sweep.report(2, 1, 0.3);
  CHECK(sweep.chosen() == -1);  // 1 of 3 at 1: 0.5, which is past it
  sweep.report(3, 10, 0.1);
  sweep.report(4, 10, 0.2);
  CHECK(sweep.chosen() == 0);  // 1 of 3 at 9
  CHECK(sweep.launch(0) == Milestone{"training_iteration", 27});
  // At 1 the best floor(5 / 3) = 1, at 3 of 3 values 1: 0.5.
  CHECK(sweep.chosen() == -1);
}

TEST_CASE("a report without metric or time attribute is not judged by promotion") {
  Sweep sweep({.max_t = 27, .reduction_factor = 3});
  sweep.add(0);
  const Decision decision = sweep.report(0, 2, std::nullopt);
  CHECK(decision.kind == Kind::kContinue);
  CHECK(decision.until == Milestone{"training_iteration", 2});  // asked again at the next report
  CHECK(sweep.report(0, 3, 0.5).kind == Kind::kPause);

  Sweep other({.max_t = 27, .reduction_factor = 3, .time_attr = "epoch"});
  CHECK(other.add(0) == Milestone{"epoch", 1});
  CHECK(other.verdict(0, 3, 0.5) == "continue");
}

TEST_CASE("another time attribute has its own name in the reasons") {
  Sweep sweep(
      {.max_t = 100, .grace_period = 2, .reduction_factor = 4, .time_attr = "time_total_s"});
  CHECK(sweep.add(0) == Milestone{"time_total_s", 2});
  // A report's time_total is twice its iteration.
  CHECK(sweep.verdict(0, 1, 0.5) ==
        "0.5 waits: 1 value is too few to promote one at time_total_s 2");
}

TEST_CASE("min_rung_size keeps a rung from promoting until it has so many values") {
  Sweep sweep({.max_t = 27, .reduction_factor = 2, .min_rung_size = 5});
  sweep.all_report(1, {0.1, 0.2, 0.3, 0.4});
  CHECK(sweep.chosen() == -1);
  sweep.report(4, 1, 0.0);
  CHECK(sweep.promoted() == Trials{3, 2});  // 2 of 5
}

TEST_CASE("low rungs open one after another as trials come to the top") {
  Sweep sweep({.max_t = 9, .reduction_factor = 3, .open_after = 2});  // rungs at 1, 3 and 9
  sweep.all_report(1, {0.9, 0.8, 0.7, 0.6, 0.5, 0.4});
  CHECK(sweep.promoted() == Trials{0, 1});  // 2 of 6
  CHECK(sweep.add(6) == Milestone{"training_iteration", 1});
  sweep.report(0, 9, 0.95);
  CHECK(sweep.chosen() == 6);  // one value at 9
  sweep.end(1, 9, 0.85, TrialEnd::kCompleted);
  CHECK(sweep.chosen() == 2);  // two: the rung at 1 is open
  CHECK(sweep.launch(2) == Milestone{"training_iteration", 3});
  CHECK(sweep.verdict(2, 3, 0.75) ==
        "0.75 waits: 1 value is too few to promote one at iteration 3");
  CHECK(sweep.promoted() == Trials{3, 4, 5, 6});
  // It had been told to run to 1.
  CHECK(sweep->result({6}, report(6, 1, 0.3)).reason ==
        "0.3 waits for room: the rung is open to all at iteration 1");
  sweep.has_saved(6);
  CHECK(sweep.promoted() == Trials{6});
  CHECK(sweep.add(7) == Milestone{"training_iteration", 3});
  CHECK_HAS(sweep->status_lines()[1], "| Iter 1.000: open");

  for (const std::uint32_t trial : {3u, 4u, 5u}) sweep.end(trial, 9, 0.6, TrialEnd::kCompleted);
  CHECK(sweep.chosen() == 7);  // five
  sweep.end(6, 9, 0.55, TrialEnd::kCompleted);
  CHECK(sweep.chosen() == 2);  // six, three times as many: that at 3 as well
  CHECK(sweep.launch(2) == Milestone{"training_iteration", 9});
  for (std::uint32_t trial = 8; trial < 24; ++trial) {
    sweep.add(trial);
    sweep.end(trial, 9, 0.1, TrialEnd::kCompleted);
  }
  CHECK(sweep.add(24) == Milestone{"training_iteration", 9});  // 22 values: the top one never opens
}

TEST_CASE("rungs that are open are open after a restart, and other parameters refuse them") {
  const AshaOptions options = promoting({.max_t = 9, .reduction_factor = 3, .open_after = 1});
  Sweep sweep(options);
  sweep.all_report(1, {0.9, 0.8, 0.7, 0.6, 0.5, 0.4});
  sweep.end(0, 9, 0.95, TrialEnd::kCompleted);
  const std::string state = sweep->save();
  Sweep again(options);
  again->restore(state);
  CHECK(again->save() == state);
  CHECK(again.add(6) == Milestone{"training_iteration", 3});
  for (const std::uint32_t trial : {1u, 2u, 3u, 4u, 5u}) again.has_saved(trial);
  CHECK(again.promoted() == Trials{1, 2, 3, 4, 5, 6});

  Sweep other({.max_t = 9, .reduction_factor = 3, .open_after = 2});
  CHECK_HAS(refusal([&] { other->restore(state); }, ErrorCode::kProtocol), "the order");
}

TEST_CASE("a trial that saves still is passed over and goes on when it has saved") {
  Sweep sweep({.max_t = 9, .reduction_factor = 2});
  sweep.all_report(1, {0.9, 0.8, 0.2, 0.1});
  sweep.saves_still(0);
  CHECK(sweep.chosen() == 1);
  sweep.saves_still(1);
  CHECK(sweep.chosen() == -1);
  sweep.has_saved(0);
  CHECK(sweep.chosen() == 0);
}

TEST_CASE("a trial whose pause was lost goes before new ones, and then waits as before") {
  Sweep sweep({.max_t = 9, .reduction_factor = 2});
  sweep.all_report(1, {0.1, 0.2, 0.3, 0.4});
  sweep.saves_still(3);
  sweep.add(4);
  CHECK(sweep.chosen() == 2);
  sweep.launch(2);
  const std::set<TrialNumber> pending = {{3}, {4}};  // 3: its attempt was lost while it saved
  const std::set<TrialNumber> paused = {{0}, {1}};
  CHECK(sweep->choose({pending, paused, true}) == TrialNumber{3});
}

TEST_CASE("a trial that ends by itself counts at the highest rung it reached, and goes nowhere") {
  Sweep sweep({.max_t = 27, .reduction_factor = 3});
  sweep.all_report(1, {0.9, 0.5, 0.4});
  sweep.launch(0);
  sweep.end(0, 4, 0.95, TrialEnd::kCompleted);
  sweep.report(3, 3, 0.5);
  sweep.report(4, 3, 0.4);
  CHECK(sweep.chosen() == -1);  // 1 of 3 at 3: 0.95, which is over
  sweep.report(5, 3, 0.6);
  sweep.report(6, 3, 0.7);
  CHECK(sweep.chosen() == -1);
  sweep.report(7, 3, 0.1);
  CHECK(sweep.chosen() == 6);  // 2 of 6: 0.95 0.7
}

TEST_CASE("a trial in error keeps its value, and tried again it waits at the same rung") {
  Sweep sweep({.max_t = 9, .reduction_factor = 2});
  sweep.all_report(1, {0.9, 0.8, 0.2, 0.1});
  sweep.end(0, 1, 0.9, TrialEnd::kError);  // it could not be saved
  CHECK(sweep.promoted() == Trials{1});    // 2 of 4: 0.9 0.8
  CHECK(sweep.add(0) == Milestone{"training_iteration", 1});
  CHECK(sweep.chosen() == 0);
  CHECK(sweep.launch(0) == Milestone{});  // PENDING: not resumed, but launched
  CHECK(sweep.verdict(0, 2, 0.7) == "0.7 waits: 1 value is too few to promote one at iteration 2");

  Sweep running({.max_t = 9, .reduction_factor = 2});
  running.all_report(1, {0.9, 0.8});
  CHECK(running.launch(0) == Milestone{"training_iteration", 2});
  running.end(0, 1, 0.9, TrialEnd::kError);  // behind its promotion
  CHECK(running.add(0) == Milestone{"training_iteration", 2});
}

TEST_CASE("tried again without a new rung it pauses once more and keeps its value") {
  Sweep sweep({.max_t = 27, .reduction_factor = 3});
  sweep.all_report(1, {0.9, 0.8, 0.2});
  sweep.end(0, 1, 0.9, TrialEnd::kError);
  sweep.add(0);
  sweep.launch(0);
  CHECK(sweep.verdict(0, 2, 0.1) == "0.9 waits for room: among the best 1 of 3 at iteration 1");
  CHECK(sweep.chosen() == 0);
  CHECK(sweep.launch(0) == Milestone{"training_iteration", 3});
}

TEST_CASE("of several brackets the higher rung goes first, then the lower bracket") {
  Sweep sweep({.max_t = 27, .reduction_factor = 3, .brackets = 2});
  std::map<double, std::vector<std::uint32_t>> by_first_rung;
  for (std::uint32_t trial = 0; trial < 40; ++trial) {
    by_first_rung[sweep.add(trial).value].push_back(trial);
    sweep.launch(trial);
  }
  REQUIRE(by_first_rung.size() == 2);
  for (const auto& [first, trials] : by_first_rung) {
    REQUIRE(trials.size() >= 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const Reported at = report(trials[i], static_cast<std::uint64_t>(first), 0.1 * double(i));
      CHECK(sweep->result({trials[i]}, at).kind == Kind::kPause);
      sweep.has_saved(trials[i]);
    }
  }
  CHECK(sweep.promoted() ==
        Trials{static_cast<int>(by_first_rung[3][2]), static_cast<int>(by_first_rung[1][2])});
}

TEST_CASE("a state of another type, of other rungs or of another mode is refused") {
  Sweep sweep({.max_t = 9, .reduction_factor = 3});
  sweep.all_report(1, {0.1, 0.2, 0.3});
  const std::string state = sweep->save();
  struct Row {
    AshaOptions options;
    Mode mode;
    const char* text;
  };
  const Row table[] = {
      {promoting({.max_t = 27, .reduction_factor = 3}), Mode::kMax, "other rungs"},
      {promoting({.max_t = 9, .reduction_factor = 3, .brackets = 2}), Mode::kMax, "other rungs"},
      {promoting({.max_t = 9, .reduction_factor = 3, .min_rung_size = 9}), Mode::kMax, "the order"},
      {promoting({.max_t = 9, .reduction_factor = 3}), Mode::kMin, "mode"},
      {{.max_t = 9, .reduction_factor = 3}, Mode::kMax, ""},
  };
  for (const Row& row : table) {
    CAPTURE(row.text);
    const auto other = asha(row.options).make();
    other->configure({"m", row.mode, 7});
    const std::string before = other->save();
    const std::string words = refusal([&] { other->restore(state); }, ErrorCode::kProtocol);
    CHECK_HAS(words, row.text);
    CHECK(other->save() == before);
  }
  const auto stopping = asha({.max_t = 9, .reduction_factor = 3}).make();
  stopping->configure({"m", Mode::kMax, 7});
  CHECK_THROWS_AS(sweep->restore(stopping->save()), Error);
  CHECK(sweep->save() == state);
}
