// The promises of every TrialScheduler (schedulers/trial_scheduler.h), tried on random schedules.
// For tests by doctest, which you bring:
//
//   #include <tune/testing/scheduler_conformance.h>
//   TEST_CASE("mine keeps the contract") { tune::testing::check_scheduler(tune::scheduler<Mine>());
//   }
//
// Not for the quality of a scheduler's decisions: only the scheduler knows that.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/random.h"
#include "schedulers/scheduler_spec.h"
#include "schedulers/trial_scheduler.h"
#include "tune/testing/reports.h"

namespace tune::testing {

inline std::unique_ptr<TrialScheduler> configured(const SchedulerSpec& spec,
                                                  const Objective& objective) {
  std::unique_ptr<TrialScheduler> scheduler = spec.make();
  scheduler->configure(objective);
  return scheduler;
}
inline std::unique_ptr<TrialScheduler> configured(const SchedulerSpec& spec,
                                                  const std::string& metric) {
  return configured(spec, Objective{metric, Mode::kMax, 7});
}

inline bool is_same(const std::optional<Replacement>& a, const std::optional<Replacement>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->donor == b->donor && a->config == b->config;
}
inline bool is_same(const Decision& a, const Decision& b) {
  return a.kind == b.kind && a.until == b.until && a.reason == b.reason && a.save == b.save &&
         a.yields == b.yields && is_same(a.replacement, b.replacement);
}

// Drives one scheduler, or several that must agree, through a random experiment.
class RandomExperiment {
 public:
  explicit RandomExperiment(std::uint64_t seed) : random_(seed, "scheduler_conformance", 0) {}

  // The first one's decisions are checked against the contract, the others' against the first's.
  std::vector<std::unique_ptr<TrialScheduler>> schedulers;
  int paused = 0;   // times that a trial was
  int resumed = 0;  // the same

  void run(int events) {
    for (int i = 0; i < events; ++i) {
      if (!ended_.empty() && random_.uniform() < 0.05) {
        add_again();
      } else if (live_.empty() || (next_trial_ < 40 && random_.uniform() < 0.15)) {
        add_trial();
      } else {
        step(std::next(live_.begin(), random_.integer(0, std::ssize(live_))));
      }
    }
  }

 private:
  struct Live {
    Milestone until;
    std::uint64_t iteration = 0;
    bool paused = false;
    std::optional<Reported> last;
  };
  using Entry = std::map<std::uint32_t, Live>::iterator;

  TrialScheduler& first() { return *schedulers.front(); }

  template <class F>
  auto ask_all(F ask) {
    const auto answer = ask(first());
    for (std::size_t i = 1; i < schedulers.size(); ++i) CHECK(ask(*schedulers[i]) == answer);
    return answer;
  }

  void tell_config(TrialNumber trial) {
    const Packed config = pack(Config{{"x", 1.0 + trial.value}, {"y", "text"}});
    for (const auto& scheduler : schedulers) scheduler->take_config(trial, config);
  }

  void add_trial() {
    const TrialNumber trial{next_trial_++};
    tell_config(trial);
    const Milestone until = ask_all([&](TrialScheduler& s) { return s.add_trial(trial); });
    live_.emplace(trial.value, Live{until, 0, false, std::nullopt});
  }

  // One that ended in an error, was stopped, or was kept back by a user goes on behind its last
  // result.
  void add_again() {
    const auto entry = ended_.begin();
    const TrialNumber trial{entry->first};
    tell_config(trial);
    entry->second.until = ask_all([&](TrialScheduler& s) { return s.add_trial(trial); });
    entry->second.paused = false;
    live_.insert(ended_.extract(entry));
  }

  void step(Entry entry) {
    auto& [number, live] = *entry;
    if (live.paused && random_.uniform() < 0.05) return end(entry, TrialEnd::kError);
    if (live.paused) return resume();
    if (random_.uniform() < 0.02) return end(entry, TrialEnd::kError);
    if (random_.uniform() < 0.02) return end(entry, TrialEnd::kCompleted);
    live.iteration += random_.uniform() < 0.05 ? 5 : 1;
    live.last = report(number, live.iteration, random_result());
    const Decision decision = judge(*live.last);
    check_decision(live, decision);
    obey(entry, decision);
  }

  void obey(Entry entry, const Decision& decision) {
    auto& [number, live] = *entry;
    const bool goes_on = decision.kind == Decision::Kind::kContinue;
    if (goes_on || decision.kind == Decision::Kind::kReplace) live.until = decision.until;
    if (decision.kind == Decision::Kind::kStop) return end(entry, TrialEnd::kStopped);
    if (decision.replacement) check_replacement(number, *decision.replacement);
    const bool yields = goes_on && decision.yields && random_.uniform() < 0.3;
    live.paused = yields || decision.kind == Decision::Kind::kPause;
    paused += live.paused;
    // A save that is asked for may fail; a trial is not paused before it is saved.
    if (live.paused || (goes_on && decision.save && random_.uniform() < 0.8)) save(number, live);
  }

  void save(std::uint32_t number, const Live& live) {
    saved_.insert(number);
    for (const auto& scheduler : schedulers) {
      scheduler->checkpoint_saved(TrialNumber{number}, live.iteration);
    }
  }

  void check_replacement(std::uint32_t number, const Replacement& by) {
    CHECK(first().replaces());
    CHECK(by.config.is_map());
    CHECK(by.donor.value < next_trial_);
    if (by.donor.value != number) CHECK(saved_.contains(by.donor.value));
  }

  Decision judge(const Reported& reported) {
    const Decision decision = first().result(reported.trial, reported);
    for (std::size_t i = 1; i < schedulers.size(); ++i) {
      CHECK(is_same(schedulers[i]->result(reported.trial, reported), decision));
    }
    return decision;
  }

  // Up to `until` the worker runs unasked: no decision may depend on a report before it.
  void check_decision(const Live& live, const Decision& decision) {
    const std::optional<double> at = ResultView(*live.last).number(live.until.attribute);
    const bool asked = at && *at >= live.until.value;
    if (!asked) CHECK(decision.kind == Decision::Kind::kContinue);
    if (!asked) CHECK(decision.until == live.until);
    if (decision.kind != Decision::Kind::kContinue) CHECK(!decision.reason.empty());
    if (decision.kind == Decision::Kind::kPause) CHECK(first().pauses());
    if (const auto max_t = first().max_t(); max_t && has_all_metrics(*live.last)) {
      if (static_cast<double>(live.iteration) >= *max_t) {
        CHECK(decision.kind == Decision::Kind::kStop);
      }
    }
  }

  bool has_all_metrics(const Reported& report) {
    const auto has = [&](const auto& one) {
      return ResultView(report).number(one.metric).has_value();
    };
    const Objective objective = first().objective();
    if (objective.goals.empty() && !has(objective)) return false;
    return std::all_of(objective.goals.begin(), objective.goals.end(), has) &&
           std::all_of(objective.constraints.begin(), objective.constraints.end(), has);
  }

  // A paused trial goes on when the scheduler chooses it.
  void resume() {
    std::set<TrialNumber> none, waiting;
    for (const auto& [number, live] : live_) {
      if (live.paused) waiting.insert(TrialNumber{number});
    }
    const Candidates candidates(none, waiting, first().resumed_first());
    const auto chosen = ask_all([&](TrialScheduler& s) { return s.choose(candidates); });
    if (!chosen) return;
    REQUIRE(waiting.contains(*chosen));
    ++resumed;
    Live& live = live_.at(chosen->value);
    live.paused = false;
    live.until = ask_all([&](TrialScheduler& s) { return s.resume_trial(*chosen); });
    const auto as = first().resumed_as(*chosen);
    if (as) check_replacement(chosen->value, as->by);
    if (as) CHECK(!as->reason.empty());
    for (std::size_t i = 1; i < schedulers.size(); ++i) {
      const auto other = schedulers[i]->resumed_as(*chosen);
      REQUIRE(other.has_value() == as.has_value());
      if (as) CHECK((is_same(other->by, as->by) && other->reason == as->reason));
    }
  }

  void end(Entry entry, TrialEnd how) {
    const auto& [number, live] = *entry;
    const Reported* last = live.last ? &*live.last : nullptr;
    for (const auto& scheduler : schedulers) scheduler->end_trial(TrialNumber{number}, how, last);
    auto ended = live_.extract(entry);
    const bool may_go_on = how == TrialEnd::kError || how == TrialEnd::kStopped;
    if (may_go_on) ended_.insert(std::move(ended));
  }

  // Mostly a number; sometimes no metric, or one that is not finite.
  Value random_value() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double luck = random_.uniform();
    if (luck < 0.03) return "no number";
    if (luck < 0.07) return std::nan("");
    if (luck < 0.11) return random_.uniform() < 0.5 ? kInfinity : -kInfinity;
    return static_cast<double>(random_.integer(0, 50)) / 50;  // ties are common
  }
  Result random_result() {
    if (random_.uniform() < 0.05) return {{"other", 1}};
    Result result{{"m", random_value()}};
    if (has_more_metrics()) {
      for (const char* metric : {"n", "o"}) result.set(metric, random_value());
    }
    return result;
  }
  bool has_more_metrics() {
    const Objective objective = first().objective();
    return !objective.goals.empty() || !objective.constraints.empty();
  }

  RandomStream random_;
  std::map<std::uint32_t, Live> live_;
  std::map<std::uint32_t, Live> ended_;
  std::set<std::uint32_t> saved_;
  std::uint32_t next_trial_ = 0;
};

// A paused trial may wait for ever, as most do below a rung; that all of them do is a mistake.
inline void check_same_decisions(const SchedulerSpec& spec, const Objective& objective) {
  int paused = 0, resumed = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    RandomExperiment experiment(seed);
    experiment.schedulers.push_back(configured(spec, objective));
    experiment.schedulers.push_back(configured(spec, objective));
    experiment.run(600);
    CHECK(experiment.schedulers[0]->status_lines() == experiment.schedulers[1]->status_lines());
    CHECK(experiment.schedulers[0]->save() == experiment.schedulers[1]->save());
    paused += experiment.paused;
    resumed += experiment.resumed;
  }
  CAPTURE(paused);
  if (paused > 0) CHECK_MESSAGE(resumed > 0, "of all paused trials none ever goes on");
}

// Schedulers restored at several moments go on exactly as the one that was never interrupted.
inline void check_save_and_restore(const SchedulerSpec& spec, const Objective& objective) {
  for (std::uint64_t seed = 11; seed <= 15; ++seed) {
    CAPTURE(seed);
    RandomExperiment experiment(seed);
    experiment.schedulers.push_back(configured(spec, objective));
    for (int part = 0; part < 5; ++part) {
      auto restored = configured(spec, objective);
      const std::string state = experiment.schedulers.front()->save();
      restored->restore(state);
      CHECK(restored->save() == state);
      CHECK(restored->status_lines() == experiment.schedulers.front()->status_lines());
      experiment.schedulers.push_back(std::move(restored));
      experiment.run(150);
    }
  }
}

// One that is saved and restored after every event keeps up with the one that never was.
inline void check_restore_at_any_event(const SchedulerSpec& spec, const Objective& objective) {
  RandomExperiment experiment(31);
  for (int i = 0; i < 2; ++i) experiment.schedulers.push_back(configured(spec, objective));
  for (int event = 0; event < 150; ++event) {
    CAPTURE(event);
    experiment.run(1);
    auto restored = configured(spec, objective);
    restored->restore(experiment.schedulers.back()->save());
    experiment.schedulers.back() = std::move(restored);
  }
}

inline void check_refused_states(const SchedulerSpec& spec, const Objective& objective) {
  RandomExperiment experiment(21);
  experiment.schedulers.push_back(configured(spec, objective));
  experiment.run(200);
  const std::string state = experiment.schedulers.front()->save();
  const std::string before = configured(spec, objective)->save();
  for (const std::string& bad :
       {std::string(), std::string("\xc1"), encoded(std::string("not a state")), state + state,
        state.substr(0, state.size() - 1)}) {
    auto scheduler = configured(spec, objective);
    try {
      scheduler->restore(bad);
      FAIL("a state that is not its own was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kProtocol);
    }
    CHECK(scheduler->save() == before);  // nothing of it stayed
  }
}

inline void check_choice(const SchedulerSpec& spec, const Objective& objective) {
  const auto scheduler = configured(spec, objective);
  std::set<TrialNumber> pending;
  for (std::uint32_t number : {0u, 1u, 2u}) {
    scheduler->add_trial(TrialNumber{number});
    pending.insert(TrialNumber{number});
  }
  const std::set<TrialNumber> none;
  const Candidates candidates(pending, none, scheduler->resumed_first());
  const std::optional<TrialNumber> chosen = scheduler->choose(candidates);
  REQUIRE_MESSAGE(chosen.has_value(),
                  "nothing runs and no trial is chosen: the sweep stands still");
  CHECK(candidates.contains(*chosen));
  CHECK(scheduler->choose(candidates) == chosen);  // asking changes nothing
  // A new trial is offered before it is added.
  const std::set<TrialNumber> new_one = {TrialNumber{3}};
  const std::optional<TrialNumber> taken = scheduler->choose({new_one, none, false});
  CHECK((!taken || *taken == TrialNumber{3}));
}

// Reports have the number "m", sometimes no metric and sometimes another kind of value; also "n"
// and "o" for a scheduler that has several objectives or constraints.
inline void check_scheduler(const SchedulerSpec& spec, const Objective& objective) {
  CHECK(configured(spec, objective)->objective().seed == objective.seed);
  CHECK_FALSE(configured(spec, objective)->status_lines().empty());
  check_same_decisions(spec, objective);
  check_save_and_restore(spec, objective);
  check_restore_at_any_event(spec, objective);
  check_refused_states(spec, objective);
  check_choice(spec, objective);
}
// `metric` is given to configure() as the experiment's; empty when the scheduler brings its own.
inline void check_scheduler(const SchedulerSpec& spec, const std::string& metric = "m") {
  check_scheduler(spec, Objective{metric, Mode::kMax, 7});
}

}  // namespace tune::testing
