// How long ASHA takes to judge one report, by how many values its rung already holds. The time
// covers what the controller calls: reading time and metric from the packed result, the decision
// with its reason, and recording the value.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/wire.h"
#include "schedulers/asha.h"

namespace {

using namespace tune;

double cpu_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

Reported report(std::uint32_t trial, RandomStream& random) {
  Reported reported;
  reported.trial = TrialNumber{trial};
  reported.iteration = 1;
  reported.result = pack(Result{{"loss", random.uniform()}, {"mean_accuracy", random.uniform()}});
  return reported;
}

// A scheduler whose lowest rung holds so many values.
std::unique_ptr<TrialScheduler> filled(AshaRule rule, std::uint32_t values, RandomStream& random) {
  auto scheduler = asha({.rule = rule}).make();
  scheduler->configure({"mean_accuracy", Mode::kMax, 1});
  for (std::uint32_t trial = 0; trial < values; ++trial) {
    scheduler->add_trial({trial});
    scheduler->result({trial}, report(trial, random));
  }
  return scheduler;
}

// Mean over so many decisions. The rung grows by a tenth at most before it is made anew.
double nanoseconds_a_decision(AshaRule rule, std::uint32_t values, std::uint32_t decisions) {
  RandomStream random(1, "asha_decision", values);
  const std::uint32_t batch = values / 10;
  std::uint32_t judged = 0;
  std::size_t stopped = 0;
  double spent = 0;
  while (judged < decisions) {
    const auto scheduler = filled(rule, values, random);
    std::vector<Reported> reports;
    for (std::uint32_t i = 0; i < batch; ++i) {
      scheduler->add_trial({values + i});
      reports.push_back(report(values + i, random));
    }
    const double start = cpu_nanoseconds();
    for (const Reported& each : reports) {
      const Decision decision = scheduler->result(each.trial, each);
      stopped += decision.kind == Decision::Kind::kStop ? 1 : 0;
    }
    spent += cpu_nanoseconds() - start;
    judged += batch;
  }
  if (stopped == 0 || stopped == judged) {
    std::fprintf(stderr, "asha judged all %u trials alike: nothing was measured\n", judged);
    std::exit(1);
  }
  return spent / judged;
}

}  // namespace

int main(int argc, char** argv) {
  const bool tiny = argc == 2 && std::strcmp(argv[1], "--tiny") == 0;
  if (argc > 1 && !tiny) {
    std::fprintf(stderr, "usage: %s [--tiny]\n", argv[0]);
    return 2;
  }
  const std::vector<std::uint32_t> sizes =
      tiny ? std::vector<std::uint32_t>{100, 1000}
           : std::vector<std::uint32_t>{1000, 100'000, 1'000'000};
  const std::uint32_t decisions = tiny ? 100 : 200'000;
  std::printf("%20s %16s %16s\n", "values in the rung", "rule ray, ns", "rule top, ns");
  for (std::uint32_t values : sizes) {
    std::printf("%20u %16.0f %16.0f\n", values,
                nanoseconds_a_decision(AshaRule::kRay, values, decisions),
                nanoseconds_a_decision(AshaRule::kTop, values, decisions));
  }
  return 0;
}
