// The time that ASHA takes to judge one report, by how many values its rung already holds. The time
// covers what the controller calls: reading time and metric from the packed result, the decision
// with its reason, and recording the value.
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/random.h"
#include "core/wire.h"
#include "schedulers/asha.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "CPU time of one decision of ASHA with 1,000, 100,000 and 1,000,000 values in its rung; by\n"
    "promotion with the choice of who gets the place that is free then. Bare limit: reading the\n"
    "metric from the packed result, comparing it with a cutoff that is known, and keeping the "
    "value\n"
    "beside as many others.\n\n"
    "bench_asha_decision [--tiny] [--runs N]";

constexpr const char* kMetric = "mean_accuracy";

Reported report(std::uint32_t trial, RandomStream& random) {
  Reported reported;
  reported.trial = TrialNumber{trial};
  reported.iteration = 1;
  reported.result = pack(Result{{"loss", random.uniform()}, {kMetric, random.uniform()}});
  return reported;
}

// A scheduler whose lowest rung holds this many values.
std::unique_ptr<TrialScheduler> filled(AshaRule rule, std::uint32_t values, RandomStream& random) {
  auto scheduler = asha({.rule = rule}).make();
  scheduler->configure({kMetric, Mode::kMax, 1});
  for (std::uint32_t trial = 0; trial < values; ++trial) {
    scheduler->add_trial({trial});
    scheduler->result({trial}, report(trial, random));
  }
  return scheduler;
}

struct Counted {
  std::uint32_t judged = 0;
  std::uint32_t stopped = 0;
  double seconds = 0;
};

[[noreturn]] void fail_unmeasured(std::uint32_t judged) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("all {} trials were judged alike: nothing was measured", judged));
}

double seconds_a_decision(const Counted& counted) {
  if (counted.stopped == 0 || counted.stopped == counted.judged) fail_unmeasured(counted.judged);
  return counted.seconds / counted.judged;
}

// Mean over this many decisions. The rung grows by a tenth at most before it is made anew.
double by_asha(AshaRule rule, std::uint32_t values, std::uint32_t decisions) {
  RandomStream random(1, "asha_decision", values);
  const std::uint32_t batch = values / 10;
  Counted counted;
  while (counted.judged < decisions) {
    const auto scheduler = filled(rule, values, random);
    std::vector<Reported> reports;
    for (std::uint32_t i = 0; i < batch; ++i) {
      scheduler->add_trial({values + i});
      reports.push_back(report(values + i, random));
    }
    const double start = cpu_time();
    for (const Reported& each : reports) {
      const Decision decision = scheduler->result(each.trial, each);
      counted.stopped += decision.kind == Decision::Kind::kStop ? 1 : 0;
    }
    counted.seconds += cpu_time() - start;
    counted.judged += batch;
  }
  return seconds_a_decision(counted);
}

// By promotion a report is three questions: the verdict on it, the trial that gets the free place
// then, and how far that trial may run. The controller's sets of waiting trials are made before.
class Promotion {
 public:
  explicit Promotion(std::uint32_t values) : scheduler_(made()), random_(1, "promotion", values) {
    add(values);
    for (const Reported& each : reports_) decide(each);
    decided_ = promoted_ = 0;
  }
  void add(std::uint32_t trials) {
    reports_.clear();
    for (std::uint32_t i = 0; i < trials; ++i) {
      scheduler_->add_trial({trials_});
      paused_.insert({trials_});
      reports_.push_back(report(trials_++, random_));
    }
  }
  double seconds() {
    const double start = cpu_time();
    for (const Reported& each : reports_) decide(each);
    return cpu_time() - start;
  }
  std::uint32_t decided() const { return decided_; }
  std::uint32_t promoted() const { return promoted_; }

 private:
  static std::unique_ptr<TrialScheduler> made() {
    auto scheduler = asha({.type = AshaType::kPromote}).make();
    scheduler->configure({kMetric, Mode::kMax, 1});
    return scheduler;
  }
  void decide(const Reported& each) {
    scheduler_->result(each.trial, each);
    ++decided_;
    const auto chosen = scheduler_->choose({none_, paused_, true});
    if (!chosen) return;
    scheduler_->resume_trial(*chosen);
    ++promoted_;
  }

  std::unique_ptr<TrialScheduler> scheduler_;
  RandomStream random_;
  std::vector<Reported> reports_;
  std::set<TrialNumber> none_, paused_;
  std::uint32_t trials_ = 0;
  std::uint32_t decided_ = 0;
  std::uint32_t promoted_ = 0;
};

double by_promotion(std::uint32_t values, std::uint32_t decisions) {
  Counted counted;
  while (counted.judged < decisions) {
    Promotion promotion(values);
    promotion.add(values / 10);
    counted.seconds += promotion.seconds();
    counted.judged += promotion.decided();
    counted.stopped += promotion.promoted();
  }
  return seconds_a_decision(counted);
}

// The same batches of reports, beside as many kept values: the caches hold the same.
double by_comparing(std::uint32_t values, std::uint32_t decisions) {
  RandomStream random(1, "asha_decision", values);
  constexpr double kCutoff = 0.75;
  const std::uint32_t batch = values / 10;
  Counted counted;
  while (counted.judged < decisions) {
    std::vector<double> kept(values);
    for (double& value : kept) value = random.uniform();
    kept.reserve(values + batch);
    std::vector<Reported> reports;
    for (std::uint32_t i = 0; i < batch; ++i) reports.push_back(report(values + i, random));
    const double start = cpu_time();
    for (const Reported& each : reports) {
      const double value = find_number(each.result, kMetric).value();
      counted.stopped += value < kCutoff ? 1 : 0;
      kept.push_back(value);
    }
    counted.seconds += cpu_time() - start;
    counted.judged += batch;
  }
  return seconds_a_decision(counted);
}

void measure(const Setting& setting) {
  const std::vector<std::uint32_t> sizes =
      setting.tiny ? std::vector<std::uint32_t>{100, 1000}
                   : std::vector<std::uint32_t>{1000, 100'000, 1'000'000};
  const std::uint32_t decisions = setting.tiny ? 100 : 200'000;
  Table table("an ASHA decision, CPU time");
  for (const std::uint32_t values : sizes) {
    const std::vector<double> seconds =
        medians(setting.runs, {[&] { return by_asha(AshaRule::kRay, values, decisions); },
                               [&] { return by_asha(AshaRule::kTop, values, decisions); },
                               [&] { return by_promotion(values, decisions); },
                               [&] { return by_comparing(values, decisions); }});
    const std::string bare = "reading and comparing";
    table.seconds(fmt::format("{} values in the rung, rule ray", values), seconds[0], bare,
                  seconds[3]);
    table.seconds(fmt::format("{} values in the rung, rule top", values), seconds[1], bare,
                  seconds[3]);
    table.seconds(fmt::format("{} values in the rung, by promotion", values), seconds[2], bare,
                  seconds[3]);
  }
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 3);
  return guarded([&] { measure(setting); });
}
