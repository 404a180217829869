// Every scheduler, and one as a user would write it, against the contract.
#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "schedulers/asha.h"
#include "schedulers/fifo.h"
#include "schedulers/hyperband.h"
#include "schedulers/median_stopping.h"
#include "tune/testing/scheduler_conformance.h"

using namespace tune;
using namespace tune::testing;

namespace {

// Pauses each trial at iteration 3; of the paused ones the best goes on, up to iteration 6.
class PauseThenBest : public TrialScheduler {
 public:
  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  Milestone add_trial(TrialNumber) override { return {"training_iteration", 3}; }

  Decision result(TrialNumber trial, const ResultView& result) override {
    const bool again = resumed_[std::to_string(trial.value)];
    const double until = again ? 6 : 3;
    if (static_cast<double>(result.iteration()) < until) {
      return Decision::go_on({"training_iteration", until});
    }
    if (again) return Decision::stop("it had its second turn");
    paused_[std::to_string(trial.value)] = result.number(objective_.metric).value_or(0);
    return Decision::pause("it waits for the others");
  }

  Milestone resume_trial(TrialNumber trial) override {
    paused_.erase(std::to_string(trial.value));
    resumed_[std::to_string(trial.value)] = true;
    return {"training_iteration", 6};
  }

  void end_trial(TrialNumber trial, TrialEnd, const Reported*) override {
    paused_.erase(std::to_string(trial.value));
    resumed_.erase(std::to_string(trial.value));
  }

  std::optional<TrialNumber> choose(const Candidates& candidates) const override {
    const std::vector<Candidate> all = candidates.list();
    const auto value = [this](const Candidate& candidate) {
      const auto found = paused_.find(std::to_string(candidate.trial.value));
      return found == paused_.end() ? 0 : found->second;
    };
    const auto is_worse = [&](const Candidate& a, const Candidate& b) {
      return value(a) < value(b);
    };
    return std::max_element(all.begin(), all.end(), is_worse)->trial;
  }

  bool resumed_first() const override { return true; }
  bool pauses() const override { return true; }
  std::vector<std::string> status_lines() const override {
    return {"Paused: " + std::to_string(paused_.size())};
  }

  std::string save() const override { return encoded(State{paused_, resumed_}); }
  void restore(std::string_view state) override {
    State saved = decoded<State>(state);
    paused_ = std::move(saved.paused);
    resumed_ = std::move(saved.resumed);
  }

 private:
  struct State {
    std::map<std::string, double> paused;
    std::map<std::string, bool> resumed;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.paused, s.resumed);
    }
  };
  Objective objective_;
  std::map<std::string, double> paused_;
  std::map<std::string, bool> resumed_;
};

class PauseForEver : public PauseThenBest {
 public:
  std::optional<TrialNumber> choose(const Candidates& candidates) const override {
    return candidates.first_pending();
  }
};

}  // namespace

TEST_CASE("fifo keeps the contract of schedulers") {
  check_scheduler(fifo());
}

TEST_CASE("fifo keeps the contract without a metric") {
  check_scheduler(fifo(), "");
}

TEST_CASE("asha keeps the contract of schedulers whatever its options") {
  const AshaOptions table[] = {
      {},
      {.max_t = 9, .reduction_factor = 3},
      {.max_t = 20, .reduction_factor = 1.5, .stop_last_trials = false},
      {.max_t = 27, .reduction_factor = 3, .brackets = 3},
      {.max_t = 16, .reduction_factor = 2, .mode = Mode::kMin, .min_rung_size = 4},
      {.max_t = 64, .reduction_factor = 4, .rule = AshaRule::kTop},
      {.max_t = 30, .reduction_factor = 2, .brackets = 9, .rule = AshaRule::kTop},
      {.max_t = 40, .grace_period = 2.5, .reduction_factor = 2.25, .time_attr = "time_total_s"},
      {.max_t = 10, .time_attr = "other"},
      {.max_t = 10, .time_attr = "nowhere"},
  };
  for (const AshaOptions& options : table) check_scheduler(asha(options));
}

TEST_CASE("asha by promotion keeps the contract of schedulers whatever its options") {
  const AshaOptions table[] = {
      {},
      {.max_t = 9, .reduction_factor = 3},
      {.max_t = 20, .reduction_factor = 1.5, .stop_last_trials = false},
      {.max_t = 27, .reduction_factor = 3, .brackets = 3},
      {.max_t = 16, .reduction_factor = 2, .mode = Mode::kMin, .min_rung_size = 4},
      {.max_t = 30, .reduction_factor = 2, .brackets = 9},
      {.max_t = 9, .reduction_factor = 2, .open_after = 1},
      {.max_t = 30, .reduction_factor = 2, .brackets = 9, .open_after = 2},
      {.max_t = 40, .grace_period = 2.5, .reduction_factor = 2.25, .time_attr = "time_total_s"},
      {.max_t = 10, .time_attr = "other"},
      {.max_t = 10, .time_attr = "nowhere"},
  };
  for (AshaOptions options : table) {
    options.type = AshaType::kPromote;
    check_scheduler(asha(options));
  }
}

TEST_CASE("median stopping keeps the contract of schedulers whatever its options") {
  const MedianStoppingOptions table[] = {
      {},
      {.grace_period = 3, .min_samples_required = 1},
      {.grace_period = 2.5, .rule = MedianRule::kBest},
      {.min_samples_required = 2, .rule = MedianRule::kBest, .mode = Mode::kMin},
      {.grace_period = 4, .time_attr = "time_total_s"},
      {.time_attr = "other"},
      {.time_attr = "nowhere"},
  };
  for (const MedianStoppingOptions& options : table) check_scheduler(median_stopping(options));
}

TEST_CASE("hyperband keeps the contract of schedulers whatever its options") {
  const HyperBandOptions table[] = {
      {},
      {.max_t = 9},
      {.max_t = 20, .reduction_factor = 2, .stop_last_trials = false},
      {.max_t = 16, .reduction_factor = 2.5, .mode = Mode::kMin},
      {.max_t = 40, .grace_period = 2.5, .time_attr = "time_total_s"},
      {.max_t = 10, .time_attr = "other"},
      {.max_t = 10, .time_attr = "nowhere"},
      {.max_t = 3, .grace_period = 3},
  };
  for (const HyperBandOptions& options : table) check_scheduler(hyperband(options));
}

namespace {

const Objective kSeveral = {
    "", Mode::kMax, 7, {{"m", Mode::kMax}, {"n", Mode::kMin}}, {{.metric = "o", .max = 0.7}}};
const Objective kConstrained = {"m", Mode::kMin, 7, {}, {{.metric = "n", .min = 0.2, .max = 0.9}}};

}  // namespace

TEST_CASE("asha keeps the contract with several objectives and under constraints") {
  for (const Objective& objective : {kSeveral, kConstrained}) {
    for (AshaType type : {AshaType::kStop, AshaType::kPromote}) {
      check_scheduler(asha({.type = type}), objective);
      check_scheduler(asha({.max_t = 27, .reduction_factor = 3, .brackets = 3, .type = type}),
                      objective);
      check_scheduler(asha({.max_t = 16, .reduction_factor = 2, .min_rung_size = 4, .type = type}),
                      objective);
    }
    check_scheduler(
        asha({.max_t = 9, .reduction_factor = 2, .type = AshaType::kPromote, .open_after = 1}),
        objective);
    check_scheduler(asha({.max_t = 30, .reduction_factor = 1.5, .rule = AshaRule::kTop}),
                    objective);
  }
}

TEST_CASE("hyperband keeps the contract with several objectives and under constraints") {
  for (const Objective& objective : {kSeveral, kConstrained}) {
    check_scheduler(hyperband({.max_t = 9}), objective);
    check_scheduler(hyperband({.max_t = 40, .grace_period = 2.5, .time_attr = "time_total_s"}),
                    objective);
  }
}

TEST_CASE("median stopping keeps the contract with several objectives and under constraints") {
  for (const Objective& objective : {kSeveral, kConstrained}) {
    check_scheduler(median_stopping(), objective);
    check_scheduler(median_stopping({.grace_period = 2.5, .min_samples_required = 1}), objective);
  }
}

TEST_CASE("asha keeps the contract with a metric of its own") {
  check_scheduler(asha({.max_t = 9, .reduction_factor = 3, .metric = "m", .mode = Mode::kMin}), "");
}

TEST_CASE("a custom scheduler that pauses keeps the contract") {
  check_scheduler(scheduler<PauseThenBest>());
}

namespace {

class NeverChooses : public FifoScheduler {
  std::optional<TrialNumber> choose(const Candidates&) const override { return std::nullopt; }
};

}  // namespace

TEST_CASE("a scheduler that leaves everything waiting breaks the contract" *
          doctest::should_fail()) {
  check_choice(scheduler<NeverChooses>(), {"m"});
}

std::vector<std::uint32_t> numbers_of(const Candidates& candidates) {
  std::vector<std::uint32_t> numbers;
  for (const Candidate& candidate : candidates.list()) numbers.push_back(candidate.trial.value);
  return numbers;
}

TEST_CASE("candidates stand in the order of their numbers, or the paused ones first") {
  using Numbers = std::vector<std::uint32_t>;
  const std::set<TrialNumber> none;
  const std::set<TrialNumber> pending = {TrialNumber{2}, TrialNumber{5}};
  const std::set<TrialNumber> paused = {TrialNumber{4}, TrialNumber{7}};
  CHECK(numbers_of({pending, paused, true}) == Numbers{4, 7, 2, 5});
  CHECK(numbers_of({pending, paused, false}) == Numbers{2, 4, 5, 7});
  CHECK(numbers_of({pending, none, true}) == Numbers{2, 5});
  for (bool paused_first : {false, true}) {
    for (const auto& waiting : {pending, none}) {
      const Candidates all(waiting, paused, paused_first);
      CHECK(all.front().trial == all.list().front().trial);
      CHECK(all.front().paused == all.list().front().paused);
    }
  }
  CHECK(Candidates(pending, paused, false).contains(TrialNumber{7}));
  CHECK_FALSE(Candidates(pending, paused, false).contains(TrialNumber{3}));
  CHECK(Candidates(none, none, false).empty());
  CHECK(Candidates(pending, paused, true).first_pending() == TrialNumber{2});
  CHECK_FALSE(Candidates(none, paused, false).first_pending().has_value());
}

TEST_CASE("the default choice is the first candidate") {
  const auto scheduler = configured(fifo(), "m");
  const std::set<TrialNumber> pending = {TrialNumber{2}};
  const std::set<TrialNumber> paused = {TrialNumber{4}};
  CHECK(scheduler->choose({pending, paused, true}) == TrialNumber{4});
}

TEST_CASE("fifo never asks, judges or bounds") {
  const auto scheduler = configured(fifo(), "m");
  CHECK(scheduler->add_trial({}) == Milestone{});
  const Decision decision = scheduler->result({}, report(0, 1'000'000, 0.1));
  CHECK(decision.kind == Decision::Kind::kContinue);
  CHECK(decision.until == Milestone{});
  CHECK_FALSE(scheduler->max_t().has_value());
  CHECK_FALSE(scheduler->pauses());
  CHECK(scheduler->status_lines() == std::vector<std::string>{"Using FIFO scheduling algorithm."});
}

TEST_CASE("a scheduler that lets no paused trial go on breaks it" * doctest::should_fail()) {
  check_scheduler(scheduler<PauseForEver>());
}
