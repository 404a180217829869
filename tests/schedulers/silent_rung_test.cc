#include "schedulers/silent_rung.h"

#include <vector>

#include <doctest/doctest.h>

#include "core/refusal.h"
#include "numbers.h"
#include "schedulers/asha.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

using Values = std::vector<double>;

// Two rungs; the trial at each place has the values at that place. `alone` more wait at the lower
// one.
bool silent(const Values& low, const Values& high, int alone = 0) {
  const CutOffPosition position(AshaRule::kTop, 3);
  PromotionRung rung(1, position, 1), next(3, position, 1);
  std::uint32_t trial = 0;
  for (; trial < low.size(); ++trial) rung.add(low[trial], {trial}, false);
  for (int i = 0; i < alone; ++i) rung.add(-1.0 * i, {trial++}, true);
  for (trial = 0; trial < high.size(); ++trial) next.add(high[trial], {trial}, true);
  return is_silent(rung, next);
}

Values counted(int count) {
  Values values;
  for (int i = 0; i < count; ++i) values.push_back(i);
  return values;
}

// In an order of its own: even places first.
Values shuffled(int count) {
  Values values;
  for (int i = 0; i < count; ++i) values.push_back(i % 2 == 0 ? i : count - i);
  return values;
}

// By promotion with rungs at 1, 3 and 9: 27 trials at the first one, of which the best nine have
// gone on, as their values say.
struct Halving {
  explicit Halving(AshaOptions options) {
    options.max_t = 9;
    options.reduction_factor = 3;
    options.type = AshaType::kPromote;
    if (options.open_after == 0 && options.open_silent) options.open_after = 100;
    scheduler = asha(options).make();
    scheduler->configure({"m", Mode::kMax, 7});
    for (std::uint32_t trial = 0; trial < 27; ++trial) {
      scheduler->add_trial({trial});
      scheduler->result({trial}, report(trial, 1, -1.0 * trial));
    }
  }
  // The best nine come to the next rung with these.
  void go_on(const Values& values) {
    for (std::uint32_t trial = 0; trial < values.size(); ++trial) {
      scheduler->resume_trial({trial});
      last = scheduler->result({trial}, report(trial, 3, values[trial]));
    }
  }
  Milestone next() { return scheduler->add_trial({27}); }

  std::unique_ptr<TrialScheduler> scheduler;
  Decision last;
};

const Values kOtherOrder = {4, 9, 2, 7, 5, 1, 8, 3, 6};

}  // namespace

TEST_CASE("Kendall's tau counts pairs in the same order, without those that are equal") {
  CHECK(kendalls_tau({{1, 1}, {2, 2}, {3, 3}}) == 1);
  CHECK(kendalls_tau({{1, 3}, {2, 2}, {3, 1}}) == -1);
  CHECK(kendalls_tau({{1, 2}, {2, 1}, {3, 3}}) == doctest::Approx(1.0 / 3));
  CHECK(kendalls_tau({{1, 1}, {1, 2}, {2, 3}}) == doctest::Approx(2.0 / 3));
  CHECK(kendalls_tau({{kNan, 1}, {1, 2}}) == 1);  // NaN is the worst
}

TEST_CASE("a rung is silent when the next one has its trials in another order") {
  CHECK_FALSE(silent(counted(9), counted(9)));
  CHECK(silent(counted(9), kOtherOrder));
  CHECK(silent(counted(9), kOtherOrder, 50));  // those that wait say nothing
  CHECK(silent(counted(9), Values(9, 0.5)));   // what is all alike is in no order
  CHECK(silent(shuffled(40), counted(40)));
}

TEST_CASE("of few trials, or of many, nothing is said of a rung") {
  CHECK(silent(counted(8), Values(8, 0.5)));
  CHECK_FALSE(silent(counted(7), Values(7, 0.5)));
  CHECK_FALSE(silent(counted(7), Values(9, 0.5)));  // seven at both
  CHECK(silent(counted(60), Values(60, 0.5)));
  CHECK_FALSE(silent(counted(61), Values(61, 0.5)));
}

TEST_CASE("more trials in a weak order make a rung silent, few may be luck") {
  // Of 8 trials tau is 0.21, of 24 it is 0.22.
  CHECK_FALSE(silent(counted(8), {3, 0, 5, 4, 1, 7, 2, 6}));
  Values many;
  for (const double each : {3, 0, 5, 4, 1, 7, 2, 6}) {
    for (int i = 0; i < 3; ++i) many.push_back(3 * each + (i + 1) % 3);
  }
  CHECK(silent(counted(24), many));
}

TEST_CASE("a rung that is silent opens, and tells why") {
  Halving sweep({});
  sweep.go_on(kOtherOrder);
  CHECK(sweep.next() == Milestone{"training_iteration", 3});
  CHECK(sweep.scheduler->status_lines()[1] ==
        "Bracket: Iter 9.000: None | Iter 3.000: 7 | Iter "
        "1.000: open");
  sweep.scheduler->add_trial({28});
  sweep.scheduler->restore(sweep.scheduler->save());
  CHECK(sweep.scheduler->add_trial({29}) == Milestone{"training_iteration", 3});
}

TEST_CASE("a trial that was on its way to a silent rung waits for room there") {
  Halving sweep({});
  sweep.scheduler->add_trial({27});
  sweep.go_on(kOtherOrder);
  CHECK(sweep.scheduler->result({27}, report(27, 1, -99.5)).reason ==
        "-99.5 waits for room: the rung is open to all, as values say little of the next one's at "
        "iteration 1");
}

TEST_CASE("a rung whose values tell something, or may not open, stays closed") {
  Halving orders({});
  orders.go_on({9, 8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(orders.next() == Milestone{"training_iteration", 1});

  Halving none({.open_after = 0, .open_silent = false});
  none.go_on(kOtherOrder);
  CHECK(none.next() == Milestone{"training_iteration", 1});

  Halving by_number({.open_after = 100, .open_silent = false});
  by_number.go_on(kOtherOrder);
  CHECK(by_number.next() == Milestone{"training_iteration", 1});

  Halving opened({});
  opened.go_on(kOtherOrder);
  CHECK_HAS(refusal([&] { by_number.scheduler->restore(opened.scheduler->save()); },
                    ErrorCode::kProtocol),
            "rungs are open that these parameters leave closed");
}
