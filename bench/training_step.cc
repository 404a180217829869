// The cost of reporting every step in a training whose steps take a millisecond, beside the same
// loop without tune.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "trainables/synthetic/busy_steps.h"
#include "tune/results/analysis.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;
using synthetic::BusyTimes;

constexpr const char* kHelp =
    "Times steps of a millisecond of arithmetic, each reported, in a trial of one CPU. Bare "
    "limit:\n"
    "the same steps in a loop without tune. Both take turns.\n\n"
    "bench_training_step [--tiny] [--runs N]";

struct Steps {
  std::uint64_t steps = 0;
  std::uint64_t rounds = 0;
};

// As much work as takes a millisecond when nothing disturbs it.
std::uint64_t rounds_of_a_millisecond() {
  constexpr std::uint64_t kRounds = 200'000;
  double shortest = 1;
  for (int i = 0; i < 20; ++i) {
    double value = 0;
    const double seconds = time_call([&] { value = synthetic::busy_work(kRounds); });
    if (value > 0) shortest = std::min(shortest, seconds);
  }
  return static_cast<std::uint64_t>(kRounds * 1e-3 / shortest);
}

BusyTimes in_a_trial(const Workplace& work, const Steps& load) {
  const std::string file = work.write(
      "sweep.yaml",
      fmt::format("plugin: {}\ntrainable: busy_steps\nconfig: {{steps: {}, rounds: {}}}\n"
                  "num_samples: 1\nmetric: x\nmode: max\nseed: 1\n"
                  "stop: {{training_iteration: {}}}\ncpus: 1\n",
                  TUNE_SYNTHETIC_PLUGIN, load.steps, load.rounds, load.steps));
  const fs::path storage = work.fresh("results");
  time_program({tune_program(), "run", file, "--quiet", "--name", "s", "--storage", storage});
  const Result last = Analysis::load(storage / "s").trials().at(0).last_result();
  return {last.get<double>("mean_ms"), last.get<double>("median_ms")};
}

BusyTimes alone(const Steps& load) {
  BusyTimes last;
  synthetic::do_busy_steps(load.steps, load.rounds, [&](double, const BusyTimes& times) {
    last = times;
    return true;
  });
  return last;
}

void measure(const Setting& setting) {
  const Workplace work(setting);
  const Steps load{setting.tiny ? 20u : 2000u, rounds_of_a_millisecond()};
  BusyTimes trial, loop;
  const std::vector<double> ms =
      medians(setting.runs, {[&] {
                               trial = in_a_trial(work, load);
                               return trial.median;
                             },
                             [&] {
                               loop = alone(load);
                               return loop.median;
                             },
                             [&] { return trial.mean; }, [&] { return loop.mean; }});
  Table table("training steps");
  table.seconds("a step with its report, median", ms[0] / 1e3, "without tune", ms[1] / 1e3);
  table.seconds("a step with its report, mean", ms[2] / 1e3, "without tune", ms[3] / 1e3);
  table.note(fmt::format("(slowed by {:.2f} % by the medians, {:.2f} % by the means)",
                         100 * (ms[0] / ms[1] - 1), 100 * (ms[2] / ms[3] - 1)));
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 7);
  return guarded([&] { measure(setting); });
}
