// HyperBand with synchronous brackets, rule by rule.
#include "schedulers/hyperband.h"

#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/refusal.h"
#include "schedulers/hyperband_scheduler.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

using Kind = Decision::Kind;
using Trials = std::vector<int>;

// A scheduler with the trials that wait for a place, as the controller keeps them.
class Bands {
 public:
  explicit Bands(const HyperBandOptions& options, Mode mode = Mode::kMax)
      : made_(hyperband(options).make()) {
    made_->configure({"m", mode, 7});
  }

  // Trials from `first` on that are added and report.
  void all_report(std::uint32_t first, std::uint64_t time, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      report(first + static_cast<std::uint32_t>(i), time, values[i]);
    }
  }
  Decision report(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    if (added_.insert(trial).second) made_->add_trial({trial});
    const Decision decision = made_->result({trial}, testing::report(trial, time, value));
    if (decision.kind == Kind::kPause) paused_.insert({trial});
    if (decision.kind == Kind::kStop) end(trial, TrialEnd::kStopped);
    return decision;
  }
  void end(std::uint32_t trial, TrialEnd how) {
    made_->end_trial({trial}, how, nullptr);
    paused_.erase({trial});
  }
  Milestone add(std::uint32_t trial) {
    added_.insert(trial);
    return made_->add_trial({trial});
  }
  // With a new trial beside those that wait, or without.
  int chosen(std::optional<std::uint32_t> pending = {}) const {
    std::set<TrialNumber> others;
    if (pending) others.insert({*pending});
    const Candidates candidates(others, paused_, true);
    if (candidates.empty()) return -1;
    const auto trial = made_->choose(candidates);
    CHECK(made_->choose(candidates) == trial);
    return trial ? static_cast<int>(trial->value) : -1;
  }
  Milestone launch(std::uint32_t trial) {
    REQUIRE(paused_.erase({trial}) > 0);
    return made_->resume_trial({trial});
  }
  // All that go on while new trials could come.
  Trials going_on() {
    constexpr std::uint32_t kNew = 1'000'000;
    Trials all;
    for (int next = chosen(kNew); next != static_cast<int>(kNew); next = chosen(kNew)) {
      all.push_back(next);
      launch(static_cast<std::uint32_t>(next));
    }
    return all;
  }
  TrialScheduler* operator->() { return made_.get(); }

 private:
  std::unique_ptr<TrialScheduler> made_;
  std::set<TrialNumber> paused_;
  std::set<std::uint32_t> added_;
};

}  // namespace

TEST_CASE("a trial that comes to a rung is told its bracket and its rank of those that have come") {
  Bands bands({.max_t = 9, .reduction_factor = 3});  // brackets of 9, 5 and 3 trials
  CHECK_FALSE(bands.report(0, 1, {}).place.has_value());
  const std::optional<RungPlace> first = bands.report(0, 1, 0.5).place;
  REQUIRE(first.has_value());
  CHECK(first->milestone == 1);
  CHECK(first->value == 0.5);
  CHECK(first->rank == 1);
  CHECK(first->of == 1);
  CHECK(first->bracket == 0u);
  CHECK_FALSE(first->cut_off.has_value());
  bands.all_report(1, 1, {0.5, 0.25, 0.75});
  const std::optional<RungPlace> fifth = bands.report(4, 1, 0.5).place;
  REQUIRE(fifth.has_value());
  CHECK(fifth->rank == 2);  // equal ones share theirs
  CHECK(fifth->of == 5);
  bands.all_report(5, 1, {0, 0, 0, 0});
  const std::optional<RungPlace> next = bands.report(9, 3, 0.5).place;  // the second bracket
  REQUIRE(next.has_value());
  CHECK(next->bracket == 1u);
  CHECK(next->milestone == 3);
  CHECK(next->of == 1);
}

TEST_CASE("brackets have the rungs and sizes of the paper") {
  using Milestones = std::vector<double>;
  using Sizes = std::vector<std::size_t>;
  const auto plans = bracket_plans({.max_t = 81, .reduction_factor = 3});
  REQUIRE(plans.size() == 5);
  CHECK(plans[0].milestones == Milestones{1, 3, 9, 27});
  CHECK(plans[0].sizes == Sizes{81, 27, 9, 3, 1});
  CHECK(plans[1].milestones == Milestones{3, 9, 27});
  CHECK(plans[1].sizes == Sizes{34, 12, 4, 2});  // 5/4 of 27, 9, 3, 1
  CHECK(plans[2].sizes == Sizes{15, 5, 2});      // 5/3 of 9, 3, 1
  CHECK(plans[3].sizes == Sizes{8, 3});          // 5/2 of 3, 1
  CHECK(plans[4].milestones.empty());
  CHECK(plans[4].sizes == Sizes{5});

  const auto uneven = bracket_plans({.max_t = 10, .grace_period = 2, .reduction_factor = 2});
  REQUIRE(uneven.size() == 4);
  CHECK(uneven[0].milestones == Milestones{2, 4, 8});
  CHECK(bracket_plans({.max_t = 3, .grace_period = 3}).size() == 1);
}

TEST_CASE("a bracket waits until all have come, then the best go on, the best first") {
  Bands bands({.max_t = 9});  // 9 3 1; 5 2; 3
  CHECK(bands->pauses());
  CHECK(bands->max_t() == 9.0);
  CHECK(bands.add(0) == Milestone{"training_iteration", 1});
  const Decision first = bands.report(0, 1, 0.1);
  CHECK(first.kind == Kind::kPause);
  CHECK(first.reason == "0.1 waits at iteration 1: 1 of 9 have come, the best 3 go on");
  bands.all_report(1, 1, {0.2, 0.9, 0.4, 0.5, 0.6, 0.7, 0.8});
  CHECK(bands.chosen(8) == 8);  // the ninth is new
  bands.report(8, 1, 0.3);
  CHECK(bands.chosen(9) == 2);
  CHECK(bands.launch(2) == Milestone{"training_iteration", 3});
  CHECK(bands.going_on() == Trials{7, 6});
  bands.report(2, 3, 0.1);
  bands.report(7, 3, 0.3);
  CHECK(bands.going_on() == Trials{});
  bands.report(6, 3, 0.2);
  CHECK(bands.chosen(9) == 7);
  CHECK(bands.launch(7) == Milestone{"training_iteration", 9});
  CHECK(bands.report(7, 9, 0.5).reason == "reached max_t 9 at iteration 9");
}

TEST_CASE("a full bracket is followed by one that begins higher, and after the last by the first") {
  Bands bands({.max_t = 9});
  std::vector<double> begins;
  for (std::uint32_t trial = 0; trial < 9 + 5 + 3 + 1; ++trial) {
    begins.push_back(bands.add(trial).value);
  }
  for (std::size_t i = 0; i < begins.size(); ++i) {
    CAPTURE(i);
    CHECK(begins[i] == (i < 9 ? 1 : i < 14 ? 3 : i < 17 ? 9 : 1));
  }
}

TEST_CASE("the oldest bracket goes first, a new trial last") {
  Bands bands({.max_t = 9});
  bands.all_report(0, 1, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8});
  bands.add(8);
  bands.all_report(9, 3, {0.1, 0.2, 0.3, 0.4, 0.5});  // the second bracket, of 5
  CHECK(bands.chosen(14) == 13);
  bands.report(8, 1, 0.9);
  CHECK(bands.going_on() == Trials{8, 7, 6, 13, 12});
}

TEST_CASE("trials that are over are not waited for, and fewer go on when few are left") {
  Bands bands({.max_t = 9});
  bands.all_report(0, 1, {0.1, 0.2});
  for (std::uint32_t trial = 2; trial < 9; ++trial) bands.add(trial);
  for (std::uint32_t trial = 2; trial < 8; ++trial) bands.end(trial, TrialEnd::kCompleted);
  CHECK(bands.going_on() == Trials{});
  CHECK(bands.report(8, 1, std::nan("")).kind == Kind::kStop);
  CHECK(bands.going_on() == Trials{1, 0});
  bands.end(0, TrialEnd::kError);
  bands.report(1, 3, 0.1);
  CHECK(bands.going_on() == Trials{1});
}

TEST_CASE("a bracket whose trials are all over is forgotten") {
  Bands bands({.max_t = 9});
  for (std::uint32_t trial = 0; trial < 9; ++trial) bands.add(trial);
  CHECK(bands->status_lines().size() == 2);
  for (std::uint32_t trial = 0; trial < 9; ++trial) bands.end(trial, TrialEnd::kCompleted);
  CHECK(bands->status_lines() ==
        std::vector<std::string>{"Using HyperBand: num_stopped=0 total_brackets=1"});
}

TEST_CASE("without new trials a bracket that is not full halves what it has") {
  Bands bands({.max_t = 9});
  bands.all_report(0, 1, {0.1, 0.4, 0.3});
  bands.add(3);
  CHECK(bands.chosen() == -1);  // 3 is on its way
  CHECK(bands.chosen(4) == 4);  // and another could join
  bands.report(3, 1, 0.2);
  CHECK(bands.chosen(4) == 4);
  CHECK(bands.chosen() == 1);  // ceil(4 * 3 / 9) = 2 go on: 0.4 0.3
  CHECK(bands.launch(1) == Milestone{"training_iteration", 3});
  CHECK(bands.chosen() == 2);
  CHECK(bands.launch(2) == Milestone{"training_iteration", 3});
  CHECK(bands.chosen() == -1);
  // It is closed: who comes now joins the next bracket.
  CHECK(bands.add(4) == Milestone{"training_iteration", 3});
  bands.report(1, 3, 0.5);
  bands.report(2, 3, 0.6);
  CHECK(bands.going_on() == Trials{2});  // ceil(4 * 1 / 9) = 1
}

TEST_CASE("a trial that saves still is passed over") {
  Bands bands({.max_t = 9, .reduction_factor = 9});  // 9 1; 2
  bands.all_report(0, 1, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9});
  const std::set<TrialNumber> pending = {{9}}, paused = {{0}, {1}};
  CHECK(bands->choose({pending, paused, true}) == TrialNumber{9});
  CHECK(bands.chosen(9) == 8);
}

TEST_CASE("of equal values the first to come goes on, and under mode min the lowest") {
  Bands bands({.max_t = 3}, Mode::kMin);  // 3 1; 2
  bands.all_report(0, 1, {0.5, 0.4, 0.4});
  CHECK(bands.going_on() == Trials{1});
}

TEST_CASE("without stop_last_trials the last ones train on to their own end") {
  Bands bands({.max_t = 3, .stop_last_trials = false});
  CHECK_FALSE(bands->max_t().has_value());
  bands.all_report(0, 1, {0.5, 0.4, 0.6});
  CHECK(bands.chosen(3) == 2);
  CHECK(bands.launch(2) == Milestone{});
  CHECK(bands.report(2, 100, 0.1).kind == Kind::kContinue);
}

TEST_CASE("a failed trial comes again to its rung, or joins another bracket") {
  Bands bands({.max_t = 9});
  bands.all_report(0, 1, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7});
  bands.add(7);
  bands.add(8);
  bands.end(7, TrialEnd::kError);
  CHECK(bands.add(7) == Milestone{"training_iteration", 1});
  bands.end(6, TrialEnd::kError);  // while it saved
  CHECK(bands.add(6) == Milestone{"training_iteration", 1});
  bands.report(8, 1, 0.0);
  CHECK(bands.going_on() == Trials{});  // both are on their way
  bands.report(7, 1, 0.8);
  bands.report(6, 2, 0.05);
  CHECK(bands.going_on() == Trials{7, 5, 4});
  bands.end(7, TrialEnd::kError);
  bands.report(5, 3, 0.5);
  bands.report(4, 3, 0.6);
  CHECK(bands.going_on() == Trials{4});
  CHECK(bands.add(7) == Milestone{"training_iteration", 3});  // the second bracket's first rung
  CHECK(bands.report(7, 4, 0.9).reason ==
        "0.9 waits at iteration 3: 1 of 5 have come, the best 2 go on");
}

TEST_CASE("a state of hyperband with other rungs, or that contradicts itself, is refused") {
  Bands bands({.max_t = 9});
  bands.all_report(0, 1, {0.1, 0.2, 0.3});
  const std::string state = bands->save();
  for (const HyperBandOptions& options :
       {HyperBandOptions{.max_t = 27}, {.max_t = 9, .grace_period = 2}}) {
    Bands other(options);
    const std::string before = other->save();
    const std::string words = refusal([&] { other->restore(state); }, ErrorCode::kProtocol);
    CHECK_HAS(words, "other rungs");
    CHECK(other->save() == before);
  }
  PackReader in(state);
  PackWriter out;
  for (int i = 0; i < 4; ++i) out.raw(in.raw());
  in.skip();
  out.array(0);  // no trial
  while (!in.at_end()) out.raw(in.raw());
  Bands other({.max_t = 9});
  const std::string words = refusal([&] { other->restore(out.bytes()); }, ErrorCode::kProtocol);
  CHECK_HAS(words, "other trials");
}
