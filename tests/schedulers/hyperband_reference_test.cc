// HyperBand on random experiments with failures, lost attempts and restarts: what must hold of
// every bracket, whatever comes.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "core/random.h"
#include "schedulers/hyperband.h"
#include "schedulers/hyperband_scheduler.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

// A sweep on some places, as the controller would run it, until nothing can go on.
class HyperbandSweep {
 public:
  HyperbandSweep(HyperBandOptions options, std::uint64_t seed, std::uint32_t trials)
      : options_(options),
        random_(seed, "hyperband_reference", 0),
        trials_wanted_(trials),
        scheduler_(fresh()) {}

  void run() {
    while (true) {
      while (running_.size() + saving_.size() < 5 && fill()) continue;
      if (running_.empty() && saving_.empty()) return;
      if (random_.uniform() < 0.02) restart();
      if (running_.empty() || (!saving_.empty() && random_.uniform() < 0.4)) {
        save();
      } else {
        step();
      }
    }
  }

  // By the last step of each trial.
  std::map<double, std::size_t> reached() const {
    std::map<double, std::size_t> counts;
    for (const auto& [trial, time] : time_) ++counts[time];
    return counts;
  }
  double failures = 0;

 private:
  std::unique_ptr<TrialScheduler> fresh() const {
    auto made = hyperband(options_).make();
    made->configure({"m", Mode::kMax, 7});
    return made;
  }
  void restart() {
    const std::string state = scheduler_->save();
    scheduler_ = fresh();
    scheduler_->restore(state);
    REQUIRE(scheduler_->save() == state);
  }
  void add(TrialNumber trial) {
    until_[trial] = scheduler_->add_trial(trial);
    pending_.insert(trial);
  }
  bool fill() {
    if (pending_.empty() && time_.size() < trials_wanted_) {
      const TrialNumber next{static_cast<std::uint32_t>(time_.size())};
      time_[next] = 0;
      add(next);
    }
    const Candidates candidates(pending_, paused_, true);
    if (candidates.empty()) return false;
    const auto chosen = scheduler_->choose(candidates);
    if (!chosen) return false;
    REQUIRE(candidates.contains(*chosen));
    if (paused_.erase(*chosen) > 0) until_[*chosen] = scheduler_->resume_trial(*chosen);
    pending_.erase(*chosen);
    running_.insert(*chosen);
    return true;
  }
  TrialNumber any_of(const std::set<TrialNumber>& set) {
    return *std::next(set.begin(), random_.integer(0, std::ssize(set)));
  }
  // Its attempt may be lost while it saves: then it comes to its pause again.
  void save() {
    const TrialNumber trial = any_of(saving_);
    saving_.erase(trial);
    if (random_.uniform() < failures) {
      redone_.insert(trial);
      pending_.insert(trial);
    } else {
      paused_.insert(trial);
    }
  }
  void step() {
    const TrialNumber trial = any_of(running_);
    if (redone_.erase(trial) > 0) {
      running_.erase(trial);
      saving_.insert(trial);
      return;
    }
    if (random_.uniform() < failures) {
      running_.erase(trial);
      scheduler_->end_trial(trial, TrialEnd::kError, nullptr);
      return add(trial);
    }
    time_[trial] += 1;
    const auto at = static_cast<std::uint64_t>(time_[trial]);
    const Decision decision = scheduler_->result(trial, report(trial.value, at, random_.uniform()));
    if (decision.kind == Decision::Kind::kContinue) return;
    running_.erase(trial);
    if (decision.kind == Decision::Kind::kPause) saving_.insert(trial);
    if (decision.kind == Decision::Kind::kStop) {
      scheduler_->end_trial(trial, TrialEnd::kStopped, nullptr);
    }
  }

  HyperBandOptions options_;
  RandomStream random_;
  std::size_t trials_wanted_;
  std::unique_ptr<TrialScheduler> scheduler_;
  std::map<TrialNumber, double> time_;
  std::map<TrialNumber, Milestone> until_;
  std::set<TrialNumber> pending_, running_, saving_, paused_, redone_;
};

}  // namespace

TEST_CASE("undisturbed brackets leave as many trials at each rung as planned") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    // 27 9 3 1 from 1, 12 4 2 from 3, 6 2 from 9, 4 to 27; twice.
    HyperbandSweep sweep({.max_t = 27}, seed, 2 * 49);
    sweep.run();
    // Left at 1: 27 - 9; at 3: 9 - 3 and 12 - 4; at 9: 3 - 1, 4 - 2 and 6 - 2; at 27: 1 2 2 4.
    CHECK(sweep.reached() == std::map<double, std::size_t>{{1, 36}, {3, 28}, {9, 16}, {27, 18}});
  }
}

TEST_CASE("a sweep that ends within a bracket halves what is there") {
  // The first bracket has 5 of 27: ceil(5 * 9 / 27) = 2 and ceil(5 * 3 / 27) = 1 go on, and
  // ceil(5 * 1 / 27) = 1.
  HyperbandSweep sweep({.max_t = 27}, 1, 5);
  sweep.run();
  CHECK(sweep.reached() == std::map<double, std::size_t>{{1, 3}, {3, 1}, {27, 1}});
}

TEST_CASE("whatever fails, every bracket comes to its end") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    HyperbandSweep sweep({.max_t = 27, .stop_last_trials = true}, seed, 70);
    sweep.failures = 0.02 * static_cast<double>(seed % 5);
    sweep.run();
    const auto reached = sweep.reached();
    REQUIRE(reached.contains(27));
    CHECK(reached.at(27) >= 9);  // 1 2 2 4 of the first four brackets
    std::size_t all = 0;
    for (const auto& [time, count] : reached) all += count;
    CHECK(all == 70);
  }
}
