// ASHA against its plain reference, on random experiments and on real learning curves.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/random.h"
#include "numbers.h"
#include "schedulers/asha.h"
#include "schedulers/reference_asha.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

using tune::testing::kInfinity;

struct Factor {
  std::int64_t numerator;
  std::int64_t denominator;
  double value() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }
};

constexpr Factor kFactors[] = {{3, 2}, {2, 1}, {3, 1}, {4, 1}, {6, 1}, {7, 1}};

// The scheduler and the reference, asked the same; they must answer the same.
class Pair {
 public:
  Pair(AshaOptions options, Factor factor, Mode mode)
      : scheduler_(asha(options).make()),
        reference_({.numerator = factor.numerator,
                    .denominator = factor.denominator,
                    .grace_halves = std::llround(2 * options.grace_period),
                    .max_t = std::llround(options.max_t),
                    .stop_last_trials = options.stop_last_trials,
                    .mode = mode,
                    .rule = options.rule,
                    .min_rung_size = static_cast<std::size_t>(options.min_rung_size)}) {
    scheduler_->configure({"m", mode, 1});
  }

  void add(std::uint32_t trial) { scheduler_->add_trial({trial}); }

  bool stops(std::uint32_t trial, std::uint64_t time, std::optional<double> value) {
    const Decision decision = scheduler_->result({trial}, report(trial, time, value));
    const bool stops = decision.kind == Decision::Kind::kStop;
    REQUIRE_MESSAGE(stops == reference_.result(trial, static_cast<double>(time), value),
                    "trial " << trial << " at " << time << ": " << decision.reason);
    if (stops) end(trial, time, value, TrialEnd::kStopped);
    return stops;
  }

  void end(std::uint32_t trial, std::uint64_t time, std::optional<double> value, TrialEnd how) {
    const Reported last = report(trial, time, value);
    scheduler_->end_trial({trial}, how, &last);
    if (how != TrialEnd::kError) reference_.complete(trial, static_cast<double>(time), value);
  }

 private:
  std::unique_ptr<TrialScheduler> scheduler_;
  ReferenceAsha reference_;
};

std::optional<double> random_value(RandomStream& random, int resolution) {
  const double luck = random.uniform();
  if (luck < 0.03) return std::nullopt;
  if (luck < 0.06) return std::nan("");
  if (luck < 0.09) return random.uniform() < 0.5 ? kInfinity : -kInfinity;
  return static_cast<double>(random.integer(0, resolution)) / resolution;
}

void run_random_experiment(Pair& pair, std::uint64_t seed) {
  struct Live {
    std::uint32_t trial;
    std::uint64_t time;
    std::optional<double> last;
  };
  RandomStream random(seed, "asha_reference", 0);
  const int resolution = seed % 2 == 0 ? 10 : 1'000'000;  // many ties, or hardly any
  std::vector<Live> live;
  std::uint32_t next = 0;
  for (int event = 0; event < 1500; ++event) {
    if (live.empty() || random.uniform() < 0.2) {
      pair.add(next);
      live.push_back({next++, 0, std::nullopt});
      continue;
    }
    const auto index = random.integer(0, std::ssize(live));
    Live& trial = live[static_cast<std::size_t>(index)];
    const bool ends = random.uniform() < 0.02;
    if (ends) {
      const TrialEnd how = random.uniform() < 0.5 ? TrialEnd::kError : TrialEnd::kCompleted;
      trial.time += static_cast<std::uint64_t>(random.integer(1, 20));  // a final report, unjudged
      pair.end(trial.trial, trial.time, random_value(random, resolution), how);
    } else {
      trial.time += random.uniform() < 0.1 ? static_cast<std::uint64_t>(random.integer(2, 30)) : 1;
    }
    if (ends || pair.stops(trial.trial, trial.time, random_value(random, resolution))) {
      live.erase(live.begin() + index);
    }
  }
}

// Validation losses, one row a configuration: steps 0 to 50.
std::vector<std::vector<double>> learning_curves() {
  std::ifstream file(TUNE_SOURCE_DIR "/tests/data/taskset/imdb_patch128_lstm128_avg_bs64.csv");
  REQUIRE(file.good());
  constexpr int kHyperparameters = 8;
  std::vector<std::vector<double>> curves;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<double>& curve = curves.emplace_back();
    std::istringstream cells(line);
    std::string cell;
    for (int column = 0; std::getline(cells, cell, ','); ++column) {
      if (column >= kHyperparameters) curve.push_back(std::strtod(cell.c_str(), nullptr));
    }
    REQUIRE(curve.size() == 51);
  }
  REQUIRE(curves.size() == 200);
  return curves;
}

struct AshaSweep {
  std::size_t steps = 0;    // trained in all
  double best = kInfinity;  // of the last losses of trials that ran to the end
};

// Trains all configurations on a few slots, as an experiment would: a trial that stops makes room.
AshaSweep sweep(Pair& pair, const std::vector<std::vector<double>>& curves, std::uint64_t seed) {
  constexpr std::size_t kSlots = 8;
  RandomStream random(seed, "asha_sweep", 0);
  struct Running {
    std::uint32_t trial;
    std::uint64_t time;
  };
  std::vector<Running> running;
  std::uint32_t next = 0;
  AshaSweep result;
  while (true) {
    while (running.size() < kSlots && next < curves.size()) {
      pair.add(next);
      running.push_back({next++, 0});
    }
    if (running.empty()) return result;
    const auto index = random.integer(0, std::ssize(running));
    Running& trial = running[static_cast<std::size_t>(index)];
    const std::vector<double>& curve = curves[trial.trial];
    const double loss = curve[trial.time++];
    ++result.steps;
    if (!pair.stops(trial.trial, trial.time, loss)) continue;
    if (trial.time == curve.size()) result.best = std::min(result.best, loss);
    running.erase(running.begin() + index);
  }
}

}  // namespace

TEST_CASE("the reference has the rungs of a bracket worked out by hand") {
  using Milestones = std::vector<double>;
  const auto milestones = [](Factor factor, std::int64_t grace_halves, std::int64_t max_t) {
    return ReferenceAsha({.numerator = factor.numerator,
                          .denominator = factor.denominator,
                          .grace_halves = grace_halves,
                          .max_t = max_t})
        .milestones();
  };
  CHECK(milestones({4, 1}, 2, 100) == Milestones{1, 4, 16, 64});
  CHECK(milestones({3, 1}, 5, 60) == Milestones{2.5, 7.5, 22.5});
  CHECK(milestones({3, 2}, 2, 5) == Milestones{1, 1.5, 2.25, 3.375});  // the next one is 5.0625
  CHECK(milestones({3, 1}, 2, 243) == Milestones{1, 3, 9, 27, 81, 243});
}

TEST_CASE("asha decides as its reference does on random experiments") {
  for (const Factor factor : kFactors) {
    for (AshaRule rule : {AshaRule::kRay, AshaRule::kTop}) {
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        CAPTURE(factor.value());
        CAPTURE(seed);
        const AshaOptions options{.max_t = 60,
                                  .grace_period = seed % 3 == 0 ? 2.5 : 1,
                                  .reduction_factor = factor.value(),
                                  .stop_last_trials = seed % 4 != 1,
                                  .rule = rule,
                                  .min_rung_size = seed % 3 == 1 ? 5 : 1};
        Pair pair(options, factor, seed % 5 < 3 ? Mode::kMax : Mode::kMin);
        run_random_experiment(pair, seed);
      }
    }
  }
}

TEST_CASE("asha decides as its reference does on real learning curves, diverged ones included") {
  const auto curves = learning_curves();
  for (const Factor factor : kFactors) {
    for (AshaRule rule : {AshaRule::kRay, AshaRule::kTop}) {
      CAPTURE(factor.value());
      Pair pair({.max_t = 51, .reduction_factor = factor.value(), .rule = rule}, factor,
                Mode::kMin);
      const AshaSweep result = sweep(pair, curves, 3);
      CHECK(result.steps < curves.size() * 51);
    }
  }
}

TEST_CASE("asha finds the best of 200 real configurations with a sixth of the steps") {
  const auto curves = learning_curves();
  double best = kInfinity;
  for (const auto& curve : curves) best = std::min(best, std::isnan(curve[50]) ? best : curve[50]);
  const Factor factor{3, 1};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Pair pair({.max_t = 51, .grace_period = 2, .reduction_factor = 3}, factor, Mode::kMin);
    const AshaSweep result = sweep(pair, curves, seed);
    CHECK(result.steps < curves.size() * 51 / 6);  // 1,120 to 1,235 of 10,200
    CHECK(result.best == best);
  }
}
