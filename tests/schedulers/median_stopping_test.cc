// Median stopping, rule by rule.
#include "schedulers/median_stopping.h"

#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/refusal.h"
#include "numbers.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

using tune::testing::kInfinity;
using tune::testing::kNan;

class Median {
 public:
  explicit Median(const MedianStoppingOptions& options, Mode mode = Mode::kMax)
      : made_(median_stopping(options).make()) {
    made_->configure({"m", mode, 7});
  }

  // "continue" or why it stopped.
  std::string verdict(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    const Decision decision = judge(trial, time, value);
    return decision.kind == Decision::Kind::kContinue ? "continue" : decision.reason;
  }
  Decision judge(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    if (added_.insert(trial).second) made_->add_trial({trial});
    return made_->result({trial}, report(trial, time, value));
  }
  void all_report(std::uint64_t time, const std::vector<double>& values) {
    for (std::uint32_t trial = 0; trial < values.size(); ++trial) judge(trial, time, values[trial]);
  }
  TrialScheduler* operator->() { return made_.get(); }

 private:
  std::unique_ptr<TrialScheduler> made_;
  std::set<std::uint32_t> added_;
};

}  // namespace

TEST_CASE("median stopping stops whose mean is worse than more than half of all") {
  Median median({});
  for (std::uint32_t trial = 0; trial < 4; ++trial) {
    CHECK(median.verdict(trial, 1, 0.1 * (trial + 1)) == "continue");  // too few others
  }
  // Others 0.1 0.2 0.3 0.4: 2 of 5 are better than 0.25, 3 of 5 better than 0.15.
  CHECK(median.verdict(4, 1, 0.25) == "continue");
  // Others 0.1 0.2 0.25 0.3 0.4: 3 of 6 are better than 0.22 and 4 better than 0.15.
  CHECK(median.verdict(5, 1, 0.22) == "continue");
  CHECK(median.verdict(6, 1, 0.15) ==
        "mean 0.15 is worse than those of more than half of 7 trials at iteration 1");
  CHECK(median->status_lines() ==
        std::vector<std::string>{"Using MedianStoppingRule: num_stopped=1."});
}

TEST_CASE("median stopping compares the mean of all reports, not the last one") {
  Median median({});
  median.all_report(1, {0.5, 0.5, 0.5, 0.5, 1.0});
  median.all_report(2, {0.5, 0.5, 0.5, 0.5});
  // (1 + 0.25) / 2 = 0.625: the best of five.
  CHECK(median.verdict(4, 2, 0.25) == "continue");
  median.all_report(3, {0.5, 0.5, 0.5, 0.5});
  // (1 + 0.25 - 0.125) / 3 = 0.375.
  CHECK(median.verdict(4, 3, -0.125) ==
        "mean 0.375 is worse than those of more than half of 5 trials at iteration 3");
}

TEST_CASE("a tie with the median goes on") {
  Median median({.min_samples_required = 1});
  for (std::uint32_t trial = 0; trial < 20; ++trial) {
    CHECK(median.verdict(trial, 1, 0.5) == "continue");
  }
}

TEST_CASE("by the best value a trial is compared with the median of the others' means") {
  Median median({.min_samples_required = 2, .rule = MedianRule::kBest});
  median.all_report(1, {0.2, 0.6});
  // The median of 0.2 and 0.6 is 0.4.
  CHECK(median.verdict(2, 1, 0.4) == "continue");
  // Of 0.2 0.4 0.6: 0.4.
  CHECK(median.verdict(3, 1, 0.3) ==
        "best value 0.3 is worse than the median of 3 others' means at iteration 1");
  median.all_report(2, {0.2, 0.0});  // means 0.2 and 0.3; the best of the second is 0.6
  CHECK(median.verdict(2, 2, 0.0) == "continue");  // its best, 0.4, and the median 0.25
}

TEST_CASE("under mode min the highest is stopped") {
  Median median({}, Mode::kMin);
  median.all_report(1, {1, 2, 3, 4});
  CHECK(median.verdict(4, 1, 3.5) ==
        "mean 3.5 is worse than those of more than half of 5 trials at iteration 1");
  CHECK(median.verdict(5, 1, 0.5) == "continue");
}

TEST_CASE("nothing is stopped before grace_period, and reports before it are not in the mean") {
  Median median({.grace_period = 3, .min_samples_required = 2});
  CHECK(median->add_trial({9}) == Milestone{"training_iteration", 3});
  median.all_report(1, {9, 9, 0});
  median.all_report(2, {9, 9, 0});
  for (std::uint32_t trial = 0; trial < 2; ++trial) {
    CHECK(median.verdict(trial, 3, 0.1) == "continue");
  }
  CHECK(median.verdict(2, 3, 0.2) == "continue");  // 0.2 itself, and 0.1 0.1 of the others
  CHECK(median.verdict(3, 3, 0.0) ==
        "mean 0.0 is worse than those of more than half of 4 trials at iteration 3");
}

TEST_CASE("nan is stopped as soon as enough others are there") {
  Median median({.min_samples_required = 2});
  CHECK(median.verdict(0, 1, kNan) == "continue");
  CHECK(median.verdict(1, 1, -kInfinity) == "continue");
  CHECK(median.verdict(2, 1, kNan) ==
        "mean nan is worse than those of more than half of 3 trials at iteration 1");
  CHECK(median.verdict(3, 1, 0.1) == "continue");

  Median best({.min_samples_required = 1, .rule = MedianRule::kBest});
  CHECK(best.verdict(0, 1, 0.5) == "continue");
  CHECK(best.verdict(0, 2, kNan) == "continue");  // nobody else is there
  CHECK(best.verdict(1, 1, 0.6) == "continue");
  CHECK(best.verdict(1, 2, kNan) == "continue");  // its best is 0.6, the other's mean nan
}

TEST_CASE("a report that skips steps counts at each and is judged at the highest") {
  Median median({.min_samples_required = 2});
  median.all_report(1, {0.5, 0.6});
  median.all_report(5, {0.5, 0.6});
  CHECK(median.verdict(2, 3, 0.1) ==
        "mean 0.1 is worse than those of more than half of 3 trials at iteration 3");
  CHECK(median.judge(3, 2, 0.7).until == Milestone{"training_iteration", 3});
}

TEST_CASE("steps lie one apart, and from the hundredth on a hundredth of the way") {
  Median median({});
  std::uint64_t time = 1;
  std::size_t steps = 0;
  for (; time < 1'000'000; ++steps) {
    const Milestone next = median.judge(0, time, 0.5).until;
    CHECK(next.value > static_cast<double>(time));
    if (time < 100) CHECK(next.value == static_cast<double>(time + 1));
    CHECK(next.value <= static_cast<double>(time) * 1.01 + 2);
    time = static_cast<std::uint64_t>(std::ceil(next.value));
  }
  CHECK(steps < 1100);
}

TEST_CASE("a time that is not finite is not judged") {
  Median median({.time_attr = "t"});
  median->add_trial({0});
  for (double time : {kInfinity, kNan}) {
    Reported reported = report(0, 1, std::nullopt);
    reported.result = pack(Result{{"m", 0.5}, {"t", time}});
    CHECK(median->result({0}, reported).kind == Decision::Kind::kContinue);
  }
}

TEST_CASE("a last result that was not told counts, one that was told does not count twice") {
  Median median({.min_samples_required = 1});
  median.all_report(1, {0.5, 0.6});
  const Reported last = report(0, 2, 0.7);
  median->end_trial({0}, TrialEnd::kCompleted, &last);  // mean 0.6 at 2
  const Reported told = report(1, 1, 0.6);
  median->end_trial({1}, TrialEnd::kStopped, &told);
  CHECK(median.verdict(2, 1, 0.5) == "continue");
  CHECK(median.verdict(2, 2, 0.7) == "continue");
  CHECK(median.verdict(3, 1, 0.6) == "continue");
  // Others at 2: 0.6 0.6; 0.55 is worse than 2 of 3.
  CHECK(median.verdict(3, 2, 0.5) ==
        "mean 0.55 is worse than those of more than half of 3 trials at iteration 2");
}

TEST_CASE("a state of median stopping with other steps or another rule is refused") {
  Median median({.min_samples_required = 2});
  median.all_report(1, {0.1, 0.2, 0.3});
  const std::string state = median->save();
  for (const MedianStoppingOptions& options :
       {MedianStoppingOptions{.grace_period = 2}, {.rule = MedianRule::kBest}}) {
    Median other(options);
    const std::string before = other->save();
    const std::string words = refusal([&] { other->restore(state); }, ErrorCode::kProtocol);
    CHECK_HAS(words, "restoring scheduler median_stopping: ");
    CHECK(other->save() == before);
  }
}
