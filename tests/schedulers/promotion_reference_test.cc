// ASHA by promotion against its plain reference, on random experiments with failures and restarts.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "core/random.h"
#include "numbers.h"
#include "schedulers/asha.h"
#include "schedulers/reference_promotion.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

using tune::testing::kInfinity;
using Answer = ReferencePromotion::Answer;
using Kind = Decision::Kind;

AshaOptions options_of(const ReferencePromotion::Options& plain) {
  return {.max_t = plain.max_t,
          .grace_period = plain.grace,
          .reduction_factor =
              static_cast<double>(plain.numerator) / static_cast<double>(plain.denominator),
          .brackets = static_cast<int>(plain.brackets),
          .stop_last_trials = plain.stop_last_trials,
          .min_rung_size = static_cast<int>(plain.min_rung_size),
          .type = AshaType::kPromote,
          .open_after = static_cast<int>(plain.open_after),
          .open_silent = plain.open_silent};
}

// An experiment on a few places, as the controller would run it. Some trials take long to save,
// some attempts are lost, some trials fail and are tried again; the scheduler is saved and
// restored.
class Experiment {
 public:
  Experiment(ReferencePromotion::Options plain, std::uint64_t seed)
      : reference_(plain), random_(seed, "promotion_reference", 0), scheduler_(fresh()) {}

  void run(int events) {
    for (int i = 0; i < events; ++i) {
      while (running_.size() + saving_.size() < 6 && fill()) continue;
      if (random_.uniform() < 0.01) restart();
      if (!saving_.empty() && random_.uniform() < 0.4) {
        save();
      } else if (!running_.empty()) {
        step();
      }
    }
    CHECK(promotions_ > 20);
  }

 private:
  struct Trial {
    std::uint64_t time = 0;
    Milestone until;
    std::optional<double> last;
  };

  std::unique_ptr<TrialScheduler> fresh() const {
    auto made = asha(options_of(reference_.options())).make();
    made->configure({"m", reference_.options().mode, 7});
    return made;
  }
  void restart() {
    const std::string state = scheduler_->save();
    scheduler_ = fresh();
    scheduler_->restore(state);
    REQUIRE(scheduler_->save() == state);
  }

  void add(std::uint32_t number) {
    const Milestone until = scheduler_->add_trial({number});
    Trial& trial = trials_[number];
    if (!brackets_.contains(number)) {
      std::size_t bracket = 0;
      const bool one = reference_.options().brackets == 1;  // of which low rungs may be passed
      while (!one && until.value != reference_.milestone(bracket, 0)) ++bracket;
      brackets_[number] = bracket;
    }
    trial.until = until;
    reference_.add(number, brackets_[number]);
    pending_.insert({number});
  }

  bool fill() {
    if (pending_.empty() && trials_.size() < 300) add(static_cast<std::uint32_t>(trials_.size()));
    const Candidates candidates(pending_, paused_, true);
    if (candidates.empty()) return false;
    const auto chosen = scheduler_->choose(candidates);
    std::optional<std::uint32_t> expected =
        reference_.promotable([&](std::uint32_t trial) { return candidates.contains({trial}); });
    if (!expected && !pending_.empty()) expected = pending_.begin()->value;
    REQUIRE(chosen.has_value() == expected.has_value());
    if (!chosen) return false;
    REQUIRE(chosen->value == *expected);
    if (paused_.erase(*chosen) > 0) {
      reference_.resume(chosen->value);
      trials_[chosen->value].until = scheduler_->resume_trial(*chosen);
      ++promotions_;
    }
    pending_.erase(*chosen);
    running_.insert(*chosen);
    return true;
  }

  TrialNumber any_of(const std::set<TrialNumber>& set) {
    return *std::next(set.begin(), random_.integer(0, std::ssize(set)));
  }

  // One that pauses has saved, or its attempt is lost.
  void save() {
    const TrialNumber trial = any_of(saving_);
    saving_.erase(trial);
    (random_.uniform() < 0.1 ? pending_ : paused_).insert(trial);
    if (random_.uniform() < 0.05 && !pending_.contains(trial)) fail(trial);
  }

  void fail(TrialNumber trial) {
    paused_.erase(trial);
    end(trial, TrialEnd::kError);
    add(trial.value);
  }

  void step() {
    const TrialNumber number = any_of(running_);
    Trial& trial = trials_[number.value];
    const double luck = random_.uniform();
    if (luck < 0.02) {
      running_.erase(number);
      return fail(number);
    }
    trial.time += random_.uniform() < 0.1 ? static_cast<std::uint64_t>(random_.integer(2, 30)) : 1;
    trial.last = value();
    if (luck < 0.03) {
      running_.erase(number);
      return end(number, TrialEnd::kCompleted);
    }
    const Decision decision =
        scheduler_->result(number, report(number.value, trial.time, trial.last));
    const Answer answer =
        reference_.result(number.value, static_cast<double>(trial.time), trial.last);
    REQUIRE(decision.kind == (answer == Answer::kContinue ? Kind::kContinue
                              : answer == Answer::kPause  ? Kind::kPause
                                                          : Kind::kStop));
    if (decision.kind == Kind::kContinue) return;
    running_.erase(number);
    if (decision.kind == Kind::kPause) saving_.insert(number);
    if (decision.kind == Kind::kStop) end(number, TrialEnd::kStopped);
  }

  void end(TrialNumber number, TrialEnd how) {
    const Trial& trial = trials_[number.value];
    const Reported last = report(number.value, trial.time, trial.last);
    scheduler_->end_trial(number, how, &last);
    reference_.end(number.value, how == TrialEnd::kError, static_cast<double>(trial.time),
                   trial.last);
  }

  std::optional<double> value() {
    const double luck = random_.uniform();
    if (luck < 0.03) return std::nullopt;
    if (luck < 0.05) return std::nan("");
    if (luck < 0.07) return random_.uniform() < 0.5 ? kInfinity : -kInfinity;
    return static_cast<double>(random_.integer(0, 40)) / 40;  // many ties
  }

  ReferencePromotion reference_;
  RandomStream random_;
  std::unique_ptr<TrialScheduler> scheduler_;
  std::map<std::uint32_t, Trial> trials_;
  std::map<std::uint32_t, std::size_t> brackets_;
  std::set<TrialNumber> pending_, running_, saving_, paused_;
  int promotions_ = 0;
};

}  // namespace

TEST_CASE("promotion decides as its reference does on random experiments") {
  struct Factor {
    std::int64_t numerator, denominator;
  };
  for (const Factor factor : {Factor{3, 2}, {2, 1}, {3, 1}, {4, 1}}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      CAPTURE(factor.numerator);
      CAPTURE(seed);
      Experiment experiment({.numerator = factor.numerator,
                             .denominator = factor.denominator,
                             .grace = seed % 3 == 0 ? 2.5 : 1,
                             .max_t = 60,
                             .brackets = seed % 4 == 0 ? 3u : 1u,
                             .mode = seed % 5 < 3 ? Mode::kMax : Mode::kMin,
                             .min_rung_size = seed % 3 == 1 ? 5u : 1u,
                             .stop_last_trials = seed % 4 != 1,
                             .open_after = seed % 4 != 0 && seed > 3 ? seed - 3 : 0,
                             .open_silent = seed != 5},
                            seed);
      experiment.run(3000);
    }
  }
}
