// Schedulers against traces of other tools' (tests/data/schedulers/make_traces.py writes them).
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/json.h"
#include "schedulers/asha.h"
#include "schedulers/fronts.h"
#include "schedulers/hyperband.h"
#include "schedulers/median_stopping.h"
#include "tune/search/pb2/pb2.h"
#include "tune/search/pbt/pbt.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

const std::string kTraces = TUNE_SOURCE_DIR "/tests/data/schedulers/";

// The words of a line.
class Words {
 public:
  explicit Words(const std::string& line) : in_(line) {}
  template <class T>
  T next() {
    T value{};
    in_ >> value;
    REQUIRE(!in_.fail());
    return value;
  }

 private:
  std::istringstream in_;
};

const char* word(Decision::Kind kind) {
  const char* words[] = {"continue", "pause", "stop", "replace"};
  return words[static_cast<int>(kind)];
}

// The scheduler with the trials that wait, asked what the trace was asked.
class Replayed {
 public:
  Replayed(const SchedulerSpec& spec, Mode mode) : scheduler_(spec.make()) {
    scheduler_->configure({"m", mode, 1});
  }

  // A place is free: its best use, as far as the trace has new trials.
  void launch(std::uint32_t trial, double until) {
    if (trial == added_) {
      scheduler_->add_trial({added_++});
      pending_.insert({trial});
    }
    const auto chosen = scheduler_->choose({pending_, paused_, true});
    REQUIRE(chosen == TrialNumber{trial});
    if (paused_.erase({trial}) > 0) CHECK(scheduler_->resume_trial({trial}).value == until);
    pending_.erase({trial});
  }
  void report(std::uint32_t trial, std::uint64_t time, double value, const std::string& expected) {
    const Reported reported = testing::report(trial, time, value);
    const Decision decision = scheduler_->result({trial}, reported);
    REQUIRE(std::string(word(decision.kind)) == expected);
    if (decision.kind == Decision::Kind::kPause) paused_.insert({trial});
    if (decision.kind == Decision::Kind::kStop) {
      scheduler_->end_trial({trial}, TrialEnd::kStopped, &reported);
    }
  }
  void add_up_to(std::uint32_t trial) {
    while (added_ <= trial) scheduler_->add_trial({added_++});
  }

 private:
  std::unique_ptr<TrialScheduler> scheduler_;
  std::set<TrialNumber> pending_, paused_;
  std::uint32_t added_ = 0;
};

}  // namespace

namespace {

// Sweeps of a trace, each on its own scheduler. Gives the number of launches.
template <class MakeSpec>
std::size_t replay(const std::string& name, MakeSpec make_spec) {
  std::ifstream file(kTraces + name);
  REQUIRE(file.good());
  std::unique_ptr<Replayed> replayed;
  std::size_t launches = 0;
  for (std::string line; std::getline(file, line);) {
    CAPTURE(line);
    Words words(line);
    const auto what = words.next<std::string>();
    if (what == "sweep") {
      const auto factor = words.next<double>();
      const auto max_t = words.next<double>();
      const bool is_max = words.next<std::string>() == "max";
      replayed =
          std::make_unique<Replayed>(make_spec(factor, max_t), is_max ? Mode::kMax : Mode::kMin);
    } else if (what == "launch") {
      const auto trial = words.next<std::uint32_t>();
      replayed->launch(trial, words.next<double>());
      ++launches;
    } else {
      const auto trial = words.next<std::uint32_t>();
      const auto time = words.next<std::uint64_t>();
      const auto value = words.next<double>();
      replayed->report(trial, time, value, words.next<std::string>());
    }
  }
  return launches;
}

// Reports of trials that all run at once. Gives how many are stopped.
std::size_t replay_reports(const std::string& name, Replayed replayed) {
  std::ifstream file(kTraces + name);
  REQUIRE(file.good());
  std::size_t stops = 0;
  for (std::string line; std::getline(file, line);) {
    CAPTURE(line);
    Words words(line);
    REQUIRE(words.next<std::string>() == "report");
    const auto trial = words.next<std::uint32_t>();
    const auto time = words.next<std::uint64_t>();
    const auto value = words.next<double>();
    const auto answer = words.next<std::string>();
    replayed.add_up_to(trial);
    replayed.report(trial, time, value, answer);
    stops += answer == "stop" ? 1 : 0;
  }
  return stops;
}

}  // namespace

TEST_CASE("promotion decides as Syne Tune's does with the paper's cut-off") {
  const std::size_t launches = replay("syne_tune_promotion.txt", [](double factor, double max_t) {
    return asha({.max_t = max_t, .reduction_factor = factor, .type = AshaType::kPromote});
  });
  CHECK(launches > 300);
}

TEST_CASE("asha by stopping with rule top decides as Syne Tune's does with that cut-off") {
  const std::size_t launches = replay("syne_tune_stopping.txt", [](double factor, double max_t) {
    return asha({.max_t = max_t, .reduction_factor = factor, .rule = AshaRule::kTop});
  });
  CHECK(launches == 200);
}

TEST_CASE("synchronous brackets are filled and halved as Syne Tune's are") {
  const std::size_t launches = replay("syne_tune_hyperband.txt", [](double factor, double max_t) {
    return hyperband({.max_t = max_t, .reduction_factor = factor});
  });
  CHECK(launches == 420);
}

TEST_CASE("median stopping by means decides as Syne Tune's does") {
  CHECK(replay_reports("syne_tune_median.txt", {median_stopping(), Mode::kMin}) > 20);
}

TEST_CASE("median stopping by the best value decides as Ray Tune's does") {
  const MedianStoppingOptions options{
      .grace_period = 2, .min_samples_required = 3, .rule = MedianRule::kBest};
  CHECK(replay_reports("ray_median.txt", {median_stopping(options), Mode::kMax}) > 20);
}

// The population of a trace, of which each decision is compared.
class ReplayedPopulation {
 public:
  ReplayedPopulation(const SchedulerSpec& spec, Mode mode) : scheduler_(spec.make()) {
    scheduler_->configure({"m", mode, 1});
    for (std::uint32_t trial = 0; trial < 10; ++trial) {
      scheduler_->take_config({trial}, pack(Config{{"x", 0.5}}));
      scheduler_->add_trial({trial});
    }
  }
  void report(Words& words) {
    const TrialNumber trial{words.next<std::uint32_t>()};
    const auto time = words.next<std::uint64_t>();
    const Reported reported = testing::report(trial.value, time, words.next<double>());
    const auto expected = words.next<std::string>();
    const Decision decision = scheduler_->result(trial, reported);
    REQUIRE((decision.kind == Decision::Kind::kReplace) == (expected == "replace"));
    REQUIRE(decision.save == (expected == "save"));
    if (decision.save) scheduler_->checkpoint_saved(trial, time), ++saved;
    if (decision.replacement) {
      std::set<std::uint32_t> donors;
      for (auto left = words.next<int>(); left > 0; --left) {
        donors.insert(words.next<std::uint32_t>());
      }
      CHECK(donors.contains(decision.replacement->donor.value));
      ++replaced;
    }
    if (time == 24) scheduler_->end_trial(trial, TrialEnd::kCompleted, &reported);
  }
  std::size_t replaced = 0, saved = 0;

 private:
  std::unique_ptr<TrialScheduler> scheduler_;
};

// Ray's trials take over the donor's times; those of the traces keep their own, as ours do.
template <class MakeSpec>
void replay_population(const std::string& name, MakeSpec make_spec) {
  std::ifstream file(kTraces + name);
  REQUIRE(file.good());
  std::unique_ptr<ReplayedPopulation> population;
  std::size_t replaced = 0, saved = 0;
  const auto finish = [&] {
    if (population) replaced += population->replaced, saved += population->saved;
  };
  for (std::string line; std::getline(file, line);) {
    CAPTURE(line);
    Words words(line);
    if (words.next<std::string>() != "sweep") {
      population->report(words);
      continue;
    }
    finish();
    const bool is_max = words.next<std::string>() == "max";
    const auto quantile = words.next<double>();
    population = std::make_unique<ReplayedPopulation>(make_spec(quantile, words.next<double>()),
                                                      is_max ? Mode::kMax : Mode::kMin);
  }
  finish();
  CHECK(replaced > 40);
  CHECK(saved > 40);
}

TEST_CASE("population based training saves and replaces whom Ray Tune's does") {
  replay_population("ray_pbt.txt", [](double quantile, double burn_in) {
    PbtOptions options;
    options.perturbation_interval = 3;
    options.hyperparam_mutations = {{"x", choice({1})}};
    options.quantile_fraction = quantile;
    options.burn_in_period = burn_in;
    return pbt(options);
  });
}

TEST_CASE("population based bandits save and replace whom Ray Tune's do") {
  replay_population("ray_pb2.txt", [](double quantile, double burn_in) {
    return pb2({.perturbation_interval = 3,
                .hyperparam_bounds = {{"x", uniform(0, 1)}},
                .quantile_fraction = quantile,
                .burn_in_period = burn_in});
  });
}

TEST_CASE("fronts and the order within them are those of Syne Tune's moasha") {
  std::ifstream trace(kTraces + "syne_tune_fronts.txt");
  int sets = 0;
  for (std::string line; std::getline(trace, line); ++sets) {
    CAPTURE(sets);
    const Value set = parse_json(line, "syne_tune_fronts.txt");
    Fronts fronts;
    for (const Value& point : set.at("values").list()) {
      Merit merit;
      for (const Value& value : point.list())
        merit.values.push_back(-value.number());  // lower wins
      fronts.add(merit);
    }
    std::vector<std::uint32_t> order;
    for (const Value& one : set.at("order").list()) {
      order.push_back(static_cast<std::uint32_t>(one.number()));
    }
    CHECK(fronts.best(fronts.size()) == order);
    for (std::size_t place = 0; place < order.size(); ++place) {
      CHECK(fronts.place(order[place]) == place);
    }
  }
  CHECK(sets == 5);
}
