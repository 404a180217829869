// How fast results get into the files of their trials, and what the files cost afterwards.
//
//   file_logger [--tiny]
//
// result.json and progress.csv together: results/s with 64 trials that report in turns of 256
// results; 10,000 trials of one step; Analysis of those 10,000; a console block over 100,000
// trials.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "core/json.h"
#include "core/platform/files.h"
#include "tune/analysis.h"
#include "tune/experiment.h"
#include "tune/file_logger.h"
#include "tune/results_csv.h"
#include "tune/status_block.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

struct Sizes {
  std::uint64_t results = 1'000'000;
  std::uint64_t short_trials = 10'000;
  std::uint64_t shown_trials = 100'000;
};

// Seconds of wall time, and of CPU time (of this process and for it), since it was made.
class Stopwatch {
 public:
  double wall() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count();
  }
  double cpu() const { return static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC; }
  // "what: 0.123 s (0.100 s CPU)", of one of `count`.
  void print(const std::string& what, double count = 1) const {
    fmt::print("{}: {:.3g} ms ({:.3g} ms CPU)\n", what, 1e3 * wall() / count, 1e3 * cpu() / count);
  }

 private:
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  std::clock_t cpu_ = std::clock();
};

ExperimentSpec make_spec() {
  ExperimentSpec spec;
  spec.name = "bench";
  spec.trainable = "Curve";
  spec.options.metric = "mean_accuracy";
  spec.options.seed = 7;
  spec.options.config = {{"lr", loguniform(1e-4, 1)}, {"momentum", uniform(0, 1)}};
  return spec;
}

Trial make_trial(std::size_t number) {
  Trial trial;
  trial.number.value = static_cast<std::uint32_t>(number);
  trial.config = pack(Config{{"lr", 0.0123}, {"momentum", 0.9}});
  trial.status = TrialStatus::kRunning;
  trial.placement = Placement{};
  trial.location = "127.0.0.1:4711";
  return trial;
}

Reported make_report(const Trial& trial, std::uint64_t iteration) {
  Reported report;
  report.trial = trial.number;
  report.iteration = iteration;
  report.time_this_iter = std::chrono::nanoseconds(1'234'567 + iteration);
  report.time_total = report.time_since_restore = report.time_this_iter * iteration;
  report.iterations_since_restore = iteration;
  const double x = 1.0 / static_cast<double>(iteration + trial.number.value + 3);
  report.result = pack(Result{{"mean_accuracy", 1 - x},
                              {"loss", {{"train", 3 * x}, {"test", 3.3 * x}}},
                              {"epoch", iteration},
                              {"good", true}});
  return report;
}

void result_rate(const fs::path& folder, const Sizes& sizes) {
  constexpr std::size_t kTrials = 64;
  constexpr std::size_t kTurn = 256;
  FileLogger logger(folder, make_spec());
  std::deque<Trial> trials;
  std::vector<Reported> reports;
  for (std::size_t i = 0; i < kTrials; ++i) {
    trials.push_back(make_trial(i));
    logger.record(TrialAdded{trials.back()}, {});
  }
  for (std::size_t i = 0; i < kTurn; ++i)
    reports.push_back(make_report(trials[i % kTrials], i + 1));
  const Stopwatch watch;
  for (std::uint64_t written = 0; written < sizes.results;) {
    for (const Reported& report : reports) {
      logger.record(ResultRecorded{trials[report.trial.value], report, false},
                    std::chrono::milliseconds(written));
      ++written;
    }
    logger.flush();
  }
  const auto count = static_cast<double>(sizes.results);
  fmt::print("results into both files: {:.0f}/s\n", count / watch.wall());
  watch.print("one result", count);
}

void short_trials(const fs::path& folder, const Sizes& sizes) {
  const ExperimentSpec spec = make_spec();
  const Stopwatch watch;
  FileLogger logger(folder, spec);
  std::deque<Trial> trials;
  for (std::size_t i = 0; i < sizes.short_trials; ++i) {
    Trial& trial = trials.emplace_back(make_trial(i));
    logger.record(TrialAdded{trial}, {});
    trial.last = make_report(trial, 1);
    logger.record(ResultRecorded{trial, *trial.last, true}, {});
    trial.status = TrialStatus::kTerminated;
    logger.record(TrialChanged{trial}, {});
    logger.flush();
  }
  watch.print("a trial of one step", static_cast<double>(sizes.short_trials));

  const Stopwatch table;
  write_results_csv(folder / "results.csv", spec, trials);
  table.print(fmt::format("results.csv of {} trials", sizes.short_trials));
  write_file_atomically(folder / "experiment.json",
                        to_json(Config{{"name", spec.name}, {"metric", spec.options.metric}}));
  const Stopwatch asked;
  const Config best = Analysis::load(folder).best_config();
  asked.print(fmt::format("the best configuration of {} trials", sizes.short_trials));
}

void redraw(const Sizes& sizes) {
  const ExperimentSpec spec = make_spec();
  std::deque<Trial> trials;
  ExperimentStatus status{.spec = spec, .trials = trials};
  for (std::size_t i = 0; i < sizes.shown_trials; ++i) {
    Trial& trial = trials.emplace_back(make_trial(i));
    trial.last = make_report(trial, 1);
    // The longest ways to look: those that run are the last ones, the one in error the first.
    if (i + 8 < sizes.shown_trials) trial.status = TrialStatus::kTerminated;
    if (i == 0) trial.status = TrialStatus::kError;
    ++status.counts[static_cast<std::size_t>(trial.status)];
  }
  status.best = TrialNumber{0};
  constexpr int kTimes = 20;
  const Stopwatch watch;
  BlockMemory memory;
  for (int i = 0; i < kTimes; ++i) {
    if (render_status(status, {}, memory, {120, 40}).empty()) std::abort();
  }
  watch.print(fmt::format("a block over {} trials", sizes.shown_trials), kTimes);
}

}  // namespace
}  // namespace tune

int main(int argc, char** argv) {
  tune::Sizes sizes;
  if (argc > 1 && std::string(argv[1]) == "--tiny") sizes = {2'000, 50, 500};
  std::string pattern = (std::filesystem::temp_directory_path() / "tune-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return 1;
  const std::filesystem::path folder = pattern;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  tune::result_rate(folder / "a", sizes);
  tune::short_trials(folder / "b", sizes);
  tune::redraw(sizes);
  std::filesystem::remove_all(folder);
  return 0;
}
