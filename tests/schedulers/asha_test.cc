// ASHA by its worked examples and rule by rule (schedulers/README.md, "ASHA").
#include "schedulers/asha.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/random.h"
#include "core/refusal.h"
#include "numbers.h"
#include "schedulers/asha_brackets.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

using tune::testing::kInfinity;
using tune::testing::kNan;
using Kind = Decision::Kind;

// A configured scheduler that adds the trials it hears of.
class Asha {
 public:
  explicit Asha(const AshaOptions& options, Mode mode = Mode::kMax) : made_(asha(options).make()) {
    made_->configure({"m", mode, 7});
  }

  Milestone add(std::uint32_t trial) { return added_[trial] = made_->add_trial({trial}); }
  Decision judge(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    if (!added_.contains(trial)) add(trial);
    return made_->result({trial}, report(trial, time, value));
  }
  // "continue" or why it stopped.
  std::string verdict(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    const Decision decision = judge(trial, time, value);
    return decision.kind == Kind::kContinue ? "continue" : decision.reason;
  }
  bool stops(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    return judge(trial, time, value).kind == Kind::kStop;
  }
  void end(std::uint32_t trial, std::uint64_t time, std::optional<double> value,
           TrialEnd how = TrialEnd::kCompleted) {
    const Reported last = report(trial, time, value);
    made_->end_trial({trial}, how, &last);
  }
  std::string bracket(std::size_t s = 0) const { return made_->status_lines().at(s + 1); }
  TrialScheduler& operator*() { return *made_; }
  TrialScheduler* operator->() { return made_.get(); }

 private:
  std::unique_ptr<TrialScheduler> made_;
  std::map<std::uint32_t, Milestone> added_;
};

}  // namespace

TEST_CASE("rungs are exact, the one at max_t included") {
  struct Row {
    double grace, max_t, factor;
    int bracket;
    std::vector<double> milestones;
  };
  const Row table[] = {
      {1, 100, 4, 0, {1, 4, 16, 64}},
      {1, 81, 3, 0, {1, 3, 9, 27, 81}},
      {1, 64, 2, 0, {1, 2, 4, 8, 16, 32, 64}},
      {1, 10, 4, 0, {1, 4}},
      {2.5, 100, 3, 0, {2.5, 7.5, 22.5, 67.5}},
      {1, 243, 3, 0, {1, 3, 9, 27, 81, 243}},
      {3, 243, 3, 0, {3, 9, 27, 81, 243}},
      {1, 59049, 3, 0, {1, 3, 9, 27, 81, 243, 729, 2187, 6561, 19683, 59049}},
      {9, 59049, 9, 0, {9, 81, 729, 6561, 59049}},
      {1, 59049, 9, 0, {1, 9, 81, 729, 6561, 59049}},
      {1, 1000, 10, 0, {1, 10, 100, 1000}},
      {10, 1000, 10, 0, {10, 100, 1000}},
      {1, 5, 1.5, 0, {1, 1.5, 2.25, 3.375}},
      {5, 5, 4, 0, {5}},
      {1, 81, 3, 1, {3, 9, 27, 81}},
      {1, 81, 3, 4, {81}},
      {1, 81, 3, 5, {}},
      {2.5, 100, 3, 2, {22.5, 67.5}},
      {1, 1e300, 1e200, 0, {1, 1e200}},
  };
  for (const auto& [grace, max_t, factor, bracket, milestones] : table) {
    CAPTURE(max_t);
    CAPTURE(factor);
    const AshaOptions options{.max_t = max_t, .grace_period = grace, .reduction_factor = factor};
    CHECK(rung_milestones(options, bracket) == milestones);
  }
}

TEST_CASE("worked example A: factor 4, mode max, all at iteration 1") {
  Asha asha({.reduction_factor = 4});
  CHECK(asha.verdict(0, 1, 0.50) == "continue");
  // p = 0: the only value.
  CHECK(asha.verdict(1, 1, 0.40) == "0.4 is worse than the cut-off 0.5 of 1 value at iteration 1");
  // p = 0.75 of 0.40 0.50: 0.40 + 0.10 * 0.75 = 0.475.
  CHECK(asha.verdict(2, 1, 0.60) == "continue");
  // p = 1.5 of 0.40 0.50 0.60: 0.50 + 0.10 * 0.5 = 0.55: equal passes.
  CHECK(asha.verdict(3, 1, 0.55) == "continue");
  // p = 2.25 of 0.40 0.50 0.55 0.60: 0.55 + 0.05 * 0.25 = 0.5625.
  CHECK(asha.verdict(4, 1, 0.58) == "continue");
  // p = 3 of 0.40 0.50 0.55 0.58 0.60: 0.58.
  CHECK(asha.verdict(5, 1, 0.575) ==
        "0.575 is worse than the cut-off 0.58 of 5 values at iteration 1");
  // p = 3.75 of 0.40 0.50 0.55 0.575 0.58 0.60: 0.575 + 0.005 * 0.75 = 0.57875.
  CHECK(asha->status_lines() ==
        std::vector<std::string>{"Using AsyncHyperBand: num_stopped=2",
                                 "Bracket: Iter 64.000: None | Iter 16.000: None | "
                                 "Iter 4.000: None | Iter 1.000: 0.57875"});
}

TEST_CASE("worked example B: factor 2, max_t 8, mode min") {
  Asha asha({.max_t = 8, .reduction_factor = 2}, Mode::kMin);
  constexpr std::uint32_t a = 0, b = 1, c = 2, d = 3;
  CHECK(asha.verdict(a, 1, 1.0) == "continue");
  CHECK(asha.verdict(a, 2, 0.8) == "continue");
  CHECK(asha.verdict(b, 1, 1.2) == "1.2 is worse than the cut-off 1.0 of 1 value at iteration 1");
  // p = 0.5 of 1.2 1.0: 1.1.
  CHECK(asha.verdict(c, 1, 0.9) == "continue");
  CHECK(asha.verdict(c, 2, 0.7) == "continue");
  CHECK(asha.verdict(a, 4, 0.5) == "continue");
  CHECK(asha.verdict(c, 4, 0.6) == "0.6 is worse than the cut-off 0.5 of 1 value at iteration 4");
  // p = 1 of 1.2 1.0 0.9: 1.0.
  CHECK(asha.verdict(d, 1, 0.95) == "continue");
  // p = 0.5 of 0.8 0.7: 0.75: equal passes.
  CHECK(asha.verdict(d, 2, 0.75) == "continue");
  CHECK(asha.verdict(a, 8, 0.3) == "reached max_t 8 at iteration 8");
  CHECK(asha->status_lines()[0] == "Using AsyncHyperBand: num_stopped=3");
  // Rung 4: p = 0.5 of 0.6 0.5; rung 2: p = 1 of 0.8 0.75 0.7; rung 1: p = 1.5 of 1.2 1.0 0.95 0.9.
  CHECK(asha.bracket() ==
        "Bracket: Iter 8.000: None | Iter 4.000: 0.55 | Iter 2.000: 0.75 | Iter 1.000: 0.975");
  asha.end(a, 8, 0.3, TrialEnd::kStopped);
  CHECK(asha.bracket().starts_with("Bracket: Iter 8.000: 0.3 |"));
}

TEST_CASE("a trial runs unasked to its next milestone, then to max_t, then for ever") {
  Asha to_max_t({.max_t = 10, .grace_period = 2, .reduction_factor = 2});  // rungs 2 4 8
  CHECK(to_max_t.add(0) == Milestone{"training_iteration", 2});
  CHECK(to_max_t.judge(0, 1, 0.5).until == Milestone{"training_iteration", 2});
  CHECK(to_max_t.judge(0, 2, 0.5).until == Milestone{"training_iteration", 4});
  CHECK(to_max_t.judge(0, 3, 0.5).until == Milestone{"training_iteration", 4});
  CHECK(to_max_t.judge(0, 9, 0.5).until == Milestone{"training_iteration", 10});
  CHECK(to_max_t.stops(0, 10, 0.5));

  Asha on_and_on(
      {.max_t = 10, .grace_period = 2, .reduction_factor = 2, .stop_last_trials = false});
  CHECK(on_and_on.judge(0, 9, 0.5).until == Milestone{});
  CHECK(on_and_on.judge(0, 1000, 0.1).until == Milestone{});
  CHECK_FALSE(on_and_on.stops(0, 2000, 0));

  Asha no_rung({.max_t = 10, .grace_period = 10, .brackets = 2});
  std::size_t without = 0;
  for (std::uint32_t trial = 0; trial < 100; ++trial) {
    CHECK(no_rung.add(trial) == Milestone{"training_iteration", 10});
    without += no_rung.stops(trial, 9, 0) ? 1 : 0;
  }
  CHECK(without == 0);
}

TEST_CASE("without stop_last_trials the rung at max_t judges as any other") {
  Asha asha({.max_t = 9, .reduction_factor = 3, .stop_last_trials = false});
  CHECK_FALSE(asha.stops(0, 9, 0.5));
  CHECK(asha.stops(1, 9, 0.4));
  CHECK_FALSE(asha->max_t().has_value());
}

TEST_CASE("the bound on training_iteration is told when there is one") {
  CHECK(Asha({.max_t = 27})->max_t() == 27.0);
  CHECK_FALSE(Asha({.max_t = 27, .time_attr = "time_total_s"})->max_t().has_value());
  CHECK_FALSE(Asha({.max_t = 27, .stop_last_trials = false})->max_t().has_value());
}

TEST_CASE("a report without metric or time is neither judged nor recorded") {
  Asha asha({.max_t = 9, .reduction_factor = 3});
  asha.judge(0, 1, 0.9);
  const Decision missing = asha.judge(1, 1, std::nullopt);
  CHECK(missing.kind == Kind::kContinue);
  CHECK(missing.until == Milestone{"training_iteration", 1});  // reached by the next report
  CHECK(asha.bracket().ends_with("Iter 1.000: 0.9"));
  CHECK(asha.stops(1, 2, 0.1));  // judged at the rung it had reached

  CHECK_FALSE(asha.stops(0, 9, std::nullopt));  // at max_t as well
  CHECK(asha.judge(0, 10, std::nullopt).until == Milestone{"training_iteration", 10});
  CHECK(asha.stops(0, 11, 0.9));

  Asha epochs({.max_t = 9, .reduction_factor = 3, .time_attr = "epoch"});
  CHECK(epochs.add(0) == Milestone{"epoch", 1});
  CHECK(epochs.judge(0, 50, 0.5).until == Milestone{"epoch", 1});
  for (const Value& time : {Value(std::nan("")), Value("three"), Value(true)}) {
    const Decision decision = epochs->result({0}, report(0, 60, Result{{"m", 1}, {"epoch", time}}));
    CHECK(decision.kind == Kind::kContinue);
    CHECK(decision.until == Milestone{"epoch", 1});
  }
  CHECK(epochs.bracket() == "Bracket: Iter 9.000: None | Iter 3.000: None | Iter 1.000: None");
}

TEST_CASE("a skipped milestone is judged once, at the highest rung reached, and fills the lower") {
  Asha asha({.max_t = 27, .reduction_factor = 3});
  asha.judge(0, 1, 0.9);
  CHECK(asha.judge(1, 10, 0.3).until ==
        Milestone{"training_iteration", 27});  // 0.9 is lower: unasked
  // Rung 1: p = 2/3 of 0.3 0.9.
  CHECK(asha.bracket() ==
        "Bracket: Iter 27.000: None | Iter 9.000: 0.3 | Iter 3.000: 0.3 | Iter 1.000: 0.7");
  CHECK_FALSE(asha.stops(1, 11, 0.0));  // recorded at all rungs reached: not judged again
  CHECK(asha.stops(2, 9, 0.2));         // a stopped one fills the lower rungs too
  CHECK_HAS(asha.bracket(), "Iter 9.000: 0.266667 | Iter 3.000: 0.266667");
}

TEST_CASE("the time attribute may be any number of the result") {
  Asha asha(
      {.max_t = 100, .grace_period = 2.5, .reduction_factor = 3, .time_attr = "time_total_s"});
  CHECK(asha.add(0) == Milestone{"time_total_s", 2.5});
  CHECK(asha.judge(0, 1, 0.5).until == Milestone{"time_total_s", 2.5});  // 2 s an iteration
  CHECK(asha.judge(0, 2, 0.5).until == Milestone{"time_total_s", 7.5});
  CHECK(asha.verdict(1, 2, 0.25) ==
        "0.25 is worse than the cut-off 0.5 of 1 value at time_total_s 2.5");
}

TEST_CASE("nan is the worst value and stops at any rung that holds one") {
  for (Mode mode : {Mode::kMax, Mode::kMin}) {
    for (AshaRule rule : {AshaRule::kRay, AshaRule::kTop}) {
      const double worst = mode == Mode::kMax ? -kInfinity : kInfinity;
      Asha asha({.max_t = 9, .reduction_factor = 3, .rule = rule}, mode);
      CHECK_FALSE(asha.stops(0, 1, kNan));  // the rung is empty
      CHECK(asha.bracket().ends_with("Iter 1.000: nan"));
      CHECK(asha.verdict(1, 1, kNan) == "nan is worse than any of 1 value at iteration 1");
      CHECK_FALSE(asha.stops(2, 1, worst));  // better than both
      CHECK(asha.stops(3, 1, kNan));
      for (std::uint32_t trial : {4u, 5u, 6u}) CHECK_FALSE(asha.stops(trial, 1, 0.5));
      CHECK(asha.stops(7, 1, worst));  // ray: p = 4 of nan nan nan worst 0.5 0.5 0.5
    }
  }
  Asha patient({.max_t = 9, .reduction_factor = 3, .min_rung_size = 3});
  CHECK_FALSE(patient.stops(0, 1, 0.1));
  CHECK_FALSE(patient.stops(1, 1, kNan));
  CHECK_FALSE(patient.stops(2, 1, kNan));
  CHECK(patient.stops(3, 1, kNan));
}

TEST_CASE("infinities are values like others") {
  Asha asha({.max_t = 9, .reduction_factor = 2});
  CHECK_FALSE(asha.stops(0, 1, -kInfinity));
  CHECK_FALSE(asha.stops(1, 1, -kInfinity));  // a tie
  CHECK_FALSE(asha.stops(2, 1, 0));           // p = 0.5 of -inf -inf
  CHECK_FALSE(asha.stops(3, 1, kInfinity));   // p = 1 of -inf -inf 0
  CHECK(asha.stops(4, 1, -1));                // p = 1.5 of -inf -inf 0 inf: a is infinite, f 0.5: 0
}

TEST_CASE("a tie with every value so far goes on, whatever the factor") {
  for (double factor : {1.5, 2.0, 3.0, 4.0, 6.0, 7.0}) {
    for (AshaRule rule : {AshaRule::kRay, AshaRule::kTop}) {
      CAPTURE(factor);
      Asha asha({.max_t = 100, .reduction_factor = factor, .rule = rule});
      for (std::uint32_t trial = 0; trial < 500; ++trial) REQUIRE_FALSE(asha.stops(trial, 1, 0.3));
    }
  }
}

TEST_CASE("rule top keeps the best 1 / factor, ties at the better rank") {
  Asha asha({.max_t = 9, .reduction_factor = 3, .rule = AshaRule::kTop});
  CHECK(asha.verdict(0, 1, 0.5) == "continue");  // n = 1: rank 1 of max(floor(1/3), 1) = 1
  CHECK(asha.verdict(1, 1, 0.4) == "0.4 is not among the best 1 of 2 values at iteration 1");
  CHECK(asha.verdict(2, 1, 0.5) == "continue");        // ties with the best: rank 1
  CHECK(asha.stops(3, 1, 0.49));                       // rank 3 of floor(4/3) = 1
  CHECK(asha.verdict(4, 1, 0.6) == "continue");        // rank 1
  CHECK(asha.verdict(5, 1, 0.5) == "continue");        // n = 6: rank 2 of 2
  CHECK(asha.stops(6, 1, 0.49));                       // n = 7: rank 5 of 2
  CHECK(asha.bracket().ends_with("Iter 1.000: 0.5"));  // what the worst that go on have
}

TEST_CASE("min_rung_size waits for so many values before anyone stops") {
  for (AshaRule rule : {AshaRule::kRay, AshaRule::kTop}) {
    Asha asha({.max_t = 9, .reduction_factor = 3, .rule = rule, .min_rung_size = 3});
    CHECK_FALSE(asha.stops(0, 1, 0.9));
    CHECK_FALSE(asha.stops(1, 1, 0.5));
    CHECK_FALSE(asha.stops(2, 1, 0.1));
    CHECK(asha.stops(3, 1, 0.6));  // 3 values are there
  }
}

TEST_CASE("a last result is recorded at the highest rung reached, without being judged") {
  Asha asha({.max_t = 27, .reduction_factor = 3});
  asha.judge(0, 1, 0.9);
  asha.add(1);
  asha.end(1, 12, 0.2);
  CHECK(asha.bracket() ==
        "Bracket: Iter 27.000: None | Iter 9.000: 0.2 | Iter 3.000: None | Iter 1.000: 0.9");
  asha.end(0, 2, 0.95);  // already recorded at rung 1
  CHECK(asha.bracket().ends_with("Iter 1.000: 0.9"));

  asha.judge(2, 1, 0.9);
  CHECK(asha.stops(2, 30, 0.7));
  asha.end(2, 30, 0.7, TrialEnd::kStopped);
  CHECK(asha.bracket().starts_with("Bracket: Iter 27.000: 0.7 |"));
  CHECK(asha->status_lines()[0] == "Using AsyncHyperBand: num_stopped=1");
}

TEST_CASE("trials that fail, or never reported, leave nothing") {
  Asha asha({.max_t = 9, .reduction_factor = 3});
  for (std::uint32_t trial : {0u, 1u, 2u, 3u}) asha.add(trial);
  asha.end(0, 9, 0.5, TrialEnd::kError);
  asha->end_trial({1}, TrialEnd::kCompleted, nullptr);
  asha.end(2, 9, std::nullopt);
  asha.end(3, 0, 0.5);  // before the first rung
  CHECK(asha.bracket() == "Bracket: Iter 9.000: None | Iter 3.000: None | Iter 1.000: None");
}

TEST_CASE("values are shown as the user reported them") {
  Asha asha({.max_t = 1, .stop_last_trials = false}, Mode::kMin);
  CHECK(asha.bracket() == "Bracket: Iter 1.000: None");
  asha.judge(0, 1, 0.0);
  CHECK(asha.bracket() == "Bracket: Iter 1.000: 0");  // no minus sign
  asha.judge(1, 1, -2.25);
  asha.judge(2, 1, 12345.678);
  CHECK(asha.verdict(3, 1, 7) == "7.0 is worse than the cut-off -1.125 of 3 values at iteration 1");
}

TEST_CASE("brackets are drawn by softmax over their numbers of rungs, from the seed alone") {
  // Rungs 1 3 9 | 3 9 | 9 | none: weights e^3, e^2, e, 1.
  const AshaOptions options{.max_t = 9, .reduction_factor = 3, .brackets = 4};
  Asha asha(options);
  Asha again(options);
  constexpr std::uint32_t kTrials = 20'000;
  std::map<double, double> joined;  // by first milestone
  for (std::uint32_t trial = 0; trial < kTrials; ++trial) {
    ++joined[asha.add(trial).value];
    const std::uint32_t backwards = kTrials - 1 - trial;
    again.add(backwards);
  }
  for (std::uint32_t trial = 0; trial < 100; ++trial) {
    CHECK(asha.judge(trial, 0, 0).until == again.judge(trial, 0, 0).until);
  }
  const double sum = std::exp(3) + std::exp(2) + std::exp(1) + 1;
  CHECK(joined[1] / kTrials == doctest::Approx(std::exp(3) / sum).epsilon(0.02));
  CHECK(joined[3] / kTrials == doctest::Approx(std::exp(2) / sum).epsilon(0.05));
  // Milestone 9: the only rung of bracket 2, and max_t for bracket 3.
  CHECK(joined[9] / kTrials == doctest::Approx((std::exp(1) + 1) / sum).epsilon(0.05));
  CHECK(asha->status_lines().size() == 5);
  CHECK(asha.bracket(2) == "Bracket: Iter 9.000: None");
  CHECK(asha.bracket(3) == "Bracket:");
}

TEST_CASE("brackets share nothing: each judges its own trials") {
  Asha asha({.max_t = 9, .reduction_factor = 3, .brackets = 2});
  std::uint32_t in_first = 0, in_second = 0;
  bool has_first = false, has_second = false;
  for (std::uint32_t trial = 0; trial < 100 && !(has_first && has_second); ++trial) {
    const bool first = asha.add(trial).value == 1;
    (first ? in_first : in_second) = trial;
    (first ? has_first : has_second) = true;
  }
  REQUIRE(has_first);
  REQUIRE(has_second);
  CHECK_FALSE(asha.stops(in_first, 3, 0.9));
  CHECK_FALSE(asha.stops(in_second, 3, 0.1));
  CHECK(asha.bracket(0).ends_with("Iter 3.000: 0.9 | Iter 1.000: 0.9"));
  CHECK(asha.bracket(1) == "Bracket: Iter 9.000: None | Iter 3.000: 0.1");
}

TEST_CASE("parameters out of range are refused with name and value") {
  struct Row {
    AshaOptions options;
    const char* text;
  };
  const Row table[] = {
      {{.max_t = 0}, "max_t is 0: it must be above 0"},
      {{.max_t = -3}, "max_t is -3"},
      {{.max_t = kNan}, "max_t is nan"},
      {{.max_t = kInfinity}, "max_t is inf"},
      {{.grace_period = 0}, "grace_period is 0: it must be above 0 and at most max_t"},
      {{.max_t = 9, .grace_period = 10},
       "grace_period is 10: it must be above 0 and at most max_t"},
      {{.grace_period = kNan}, "grace_period is nan"},
      {{.reduction_factor = 1}, "reduction_factor is 1: it must be above 1"},
      {{.reduction_factor = 0.5}, "reduction_factor is 0.5"},
      {{.reduction_factor = kInfinity}, "reduction_factor is inf"},
      {{.reduction_factor = 1.0000001}, "large enough for fewer than 10000 rungs"},
      {{.brackets = 0}, "brackets is 0: it must be from 1 to 1000"},
      {{.brackets = 1001}, "brackets is 1001"},
      {{.time_attr = ""}, "time_attr is empty"},
      {{.min_rung_size = 0}, "min_rung_size is 0: it must be at least 1"},
  };
  for (const Row& row : table) {
    CHECK_HAS(refusal([&] { asha(row.options); }), row.text);
  }
  CHECK_NOTHROW(asha({}));
  CHECK_NOTHROW(asha({.max_t = 1e-300, .grace_period = 1e-300, .reduction_factor = 1.5}));
  CHECK_NOTHROW(asha({.max_t = 1e300, .grace_period = 1e-300, .reduction_factor = 10}));
}

TEST_CASE("metric and mode come from the scheduler or the experiment, never from both") {
  const auto own = asha({.metric = "loss", .mode = Mode::kMin}).make();
  own->configure({"", Mode::kMax, 3});
  CHECK(own->objective().metric == "loss");
  CHECK(own->objective().mode == Mode::kMin);
  CHECK(own->objective().seed == 3);

  const auto given = asha().make();
  given->configure({"loss/valid", Mode::kMin, 3});
  CHECK(given->objective().metric == "loss/valid");
  CHECK(given->objective().mode == Mode::kMin);

  CHECK_THROWS_WITH_AS(asha({.metric = "loss"}).make()->configure({"acc", Mode::kMax, 3}),
                       "scheduler asha: metric is 'loss', and the experiment's is 'acc': give it "
                       "in one place",
                       Error);
  CHECK_THROWS_AS(asha({.metric = "acc"}).make()->configure({"acc", Mode::kMax, 3}), Error);
  CHECK_THROWS_WITH_AS(
      asha().make()->configure({}),
      "scheduler asha: it compares trials by a metric, and none is given: set metric", Error);
}

TEST_CASE("a state of other parameters is refused") {
  Asha asha({.max_t = 27, .reduction_factor = 3});
  for (std::uint32_t trial = 0; trial < 20; ++trial) asha.judge(trial, 1 + trial, 0.1 * trial);
  const std::string state = asha->save();
  const AshaOptions others[] = {{.max_t = 9, .reduction_factor = 3},
                                {.max_t = 27, .grace_period = 2, .reduction_factor = 3},
                                {.max_t = 27, .reduction_factor = 3, .brackets = 2},
                                {.max_t = 27, .reduction_factor = 3, .rule = AshaRule::kTop}};
  for (const AshaOptions& options : others) {
    Asha other(options);
    const std::string before = other->save();
    CHECK_THROWS_AS(other->restore(state), Error);
    CHECK(other->save() == before);
  }
  CHECK_NOTHROW(Asha({.max_t = 27, .reduction_factor = 3})->restore(state));
}

TEST_CASE("a state of the other mode or another metric is refused") {
  Asha max({.max_t = 27, .reduction_factor = 3}, Mode::kMax);
  Asha min({.max_t = 27, .reduction_factor = 3}, Mode::kMin);
  const std::string empty = max->save();
  for (std::uint32_t trial = 0; trial < 20; ++trial) max.judge(trial, 1 + trial, 0.1 * trial);
  const std::string before = min->save();
  for (const std::string& state : {empty, max->save()}) {
    CHECK_HAS(refusal([&] { min->restore(state); }, ErrorCode::kProtocol),
              "restoring scheduler asha: it was saved under mode max, and the experiment's is min");
  }
  CHECK(min->save() == before);
  const auto other = asha({.max_t = 27, .reduction_factor = 3}).make();
  other->configure({"loss", Mode::kMax, 7});
  CHECK_HAS(refusal([&] { other->restore(empty); }, ErrorCode::kProtocol),
            "it has values of the metric 'm', and the experiment's is 'loss'");
}

TEST_CASE("a state of before the objective was saved is taken") {
  Asha asha({.max_t = 27, .reduction_factor = 3});
  for (std::uint32_t trial = 0; trial < 20; ++trial) asha.judge(trial, 1 + trial, 0.1 * trial);
  const std::string state = asha->save();
  PackReader in(state);
  const std::string old(in.raw());  // the objective follows
  REQUIRE(old.size() < state.size());
  Asha other({.max_t = 27, .reduction_factor = 3});
  other->restore(old);
  CHECK(other->save() == state);
}

TEST_CASE("no cut-off is shown as minus zero") {
  Asha asha({.max_t = 9, .reduction_factor = 3}, Mode::kMin);
  asha.judge(0, 1, 0.0);
  CHECK(asha.bracket() == "Bracket: Iter 9.000: None | Iter 3.000: None | Iter 1.000: 0");
  CHECK(asha.verdict(1, 1, 0.5) == "0.5 is worse than the cut-off 0.0 of 1 value at iteration 1");
  Asha top({.max_t = 9, .reduction_factor = 3, .rule = AshaRule::kTop}, Mode::kMin);
  top.judge(0, 1, -1.0);
  CHECK(top.verdict(1, 1, 0.0) == "0.0 is not among the best 1 of 2 values at iteration 1");
}

TEST_CASE("a trial that is tried again after an error goes on behind the rungs it has passed") {
  Asha asha({.max_t = 9, .reduction_factor = 3});
  CHECK(asha.add(0) == Milestone{"training_iteration", 1});
  asha.judge(0, 1, 0.5);
  asha.judge(0, 3, 0.6);
  asha.end(0, 4, 0.6, TrialEnd::kError);
  CHECK(asha.add(0) == Milestone{"training_iteration", 9});
  CHECK(asha.judge(0, 4, 0.6).until == Milestone{"training_iteration", 9});
  asha.end(0, 5, 0.7);
  CHECK(asha.bracket() == "Bracket: Iter 9.000: None | Iter 3.000: 0.6 | Iter 1.000: 0.5");
}
