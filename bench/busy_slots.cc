// The share of slots that are busy where many short trials end fast.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/value.h"
#include "tune/results/event_lines.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHelp =
    "Runs tune run with 64 slots and 384 and 1,500 trials that sleep a second, with 8 parameters,\n"
    "under random, tpe, gp and auto. Prints the share of the slots that were busy from the first "
    "start to\n"
    "the last end, by events.jsonl. Bare limit: the share under random, whose proposals take no "
    "time.\n\n"
    "bench_busy_slots [--tiny] [--runs N]";

constexpr int kParameters = 8;

struct Load {
  int slots = 0;
  int trials = 0;
  double seconds = 0;  // of each
};

std::string sweep_of(const Load& load, const std::string& searcher) {
  std::string text = fmt::format(
      "command: [sh, -c, \"sleep {}; echo '{{\\\"y\\\": ${{x0}}}}' >&$TUNE_FD\"]\n"
      "report: fd\nnum_samples: {}\nmetric: y\nmode: max\nseed: 1\ncpus: {}\nsearcher: {}\n"
      "config:\n",
      load.seconds, load.trials, load.slots, searcher);
  for (int i = 0; i < kParameters; ++i) text += fmt::format("  x{}: {{uniform: [0, 1]}}\n", i);
  return text;
}

double busy_share(const fs::path& experiment, const Load& load) {
  std::map<std::string, double> began;
  double first = std::numeric_limits<double>::infinity();
  double last = 0;
  double busy = 0;
  int ended = 0;
  for_each_event(experiment, {"attempt_started", "attempt_ended"}, [&](Value&& event) {
    const double time = event.at("time").number();
    const auto [one, is_start] = began.try_emplace(event.at("trial").string(), time);
    if (is_start) {
      first = std::min(first, time);
      return;
    }
    busy += time - one->second;
    last = std::max(last, time);
    ++ended;
  });
  if (ended != load.trials) {
    throw Error(ErrorCode::kTrialFailed,
                fmt::format("{} trials were asked for, {} ended", load.trials, ended));
  }
  return busy / (load.slots * (last - first));
}

double run_sweep(const Workplace& work, const Load& load, const std::string& searcher) {
  const std::string file = work.write("sweep.yaml", sweep_of(load, searcher));
  const fs::path storage = work.fresh("results");
  time_program({tune_program(), "run", file, "--quiet", "--name", "s", "--storage", storage});
  return busy_share(storage / "s", load);
}

void measure_load(const Setting& setting, const Workplace& work, const Load& load) {
  const std::vector<std::string> searchers = {"random", "tpe", "gp", "auto"};
  std::vector<std::function<double()>> measurements;
  for (const std::string& searcher : searchers) {
    measurements.push_back([&, searcher] { return run_sweep(work, load, searcher); });
  }
  const std::vector<double> shares = medians(setting.runs, measurements);
  Table table("share of the slots busy");
  for (std::size_t i = 0; i < searchers.size(); ++i) {
    const std::string what = fmt::format("{}, {} slots, {} trials of {} s", searchers[i],
                                         load.slots, load.trials, load.seconds);
    table.rate(what, "%", 100 * shares[i], "random", 100 * shares[0]);
  }
}

void measure(const Setting& setting) {
  const Workplace work(setting);
  if (setting.tiny) return measure_load(setting, work, {24, 60, 0.05});
  measure_load(setting, work, {64, 384, 1});
  measure_load(setting, work, {64, 1500, 1});
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 1);
  return guarded([&] { measure(setting); });
}
