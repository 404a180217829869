// The speed at which results get into the files of their trials, and what the files cost
// afterwards; beside writing and reading the same bytes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "tune/results/analysis.h"
#include "tune/results/file_logger.h"
#include "tune/results/last_results.h"
#include "tune/results/record_channel.h"
#include "tune/results/results_csv.h"
#include "tune/show/status_block.h"
#include "tune/spec/experiment_identity.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHelp =
    "Times the driver's own work for result files, without nodes and journal: results of 64 "
    "trials\n"
    "and of 1,000, in turns of 256, into result.json and progress.csv; 10,000 trials of one step, "
    "with\n"
    "folder and files; results.csv and the best configuration of those; a block for the terminal\n"
    "over 100,000 trials. Bare limits: the same bytes written, or read, in as many pieces; the\n"
    "statuses counted.\n\n"
    "bench_file_logger [--tiny] [--runs N]";

struct Sizes {
  std::uint64_t results = 1'000'000;
  std::uint32_t short_trials = 10'000;
  std::uint32_t shown_trials = 100'000;
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

constexpr std::size_t kFew = 64;  // trials that report
constexpr std::size_t kMany = 1000;
constexpr std::size_t kTurn = 256;  // results
constexpr std::size_t kMaxWaitingBytes = 32u << 20;

// As the driver does: no turn begins while too much waits.
void flush(FileLogger& logger, const SideWork& work) {
  while (!work.has_room()) std::this_thread::yield();
  logger.flush();
}

double log_results(const fs::path& folder, std::size_t reporting, const Sizes& sizes) {
  fs::create_directory(folder);
  SideWork work(kMaxWaitingBytes);
  FileLogger logger(folder, make_spec(), work);
  std::deque<Trial> trials;
  std::vector<Reported> reports;
  for (std::size_t i = 0; i < reporting; ++i) {
    trials.push_back(make_trial(i));
    logger.record(TrialAdded{trials.back()}, {});
  }
  for (std::size_t i = 0; i < std::max(reporting, kTurn); ++i) {
    reports.push_back(make_report(trials[i % reporting], i + 1));
  }
  return time_call([&] {
    std::size_t next = 0;
    for (std::uint64_t written = 0; written < sizes.results;) {
      for (std::size_t i = 0; i < kTurn; ++i) {
        const Reported& report = reports[next++ % reports.size()];
        logger.record(ResultRecorded{trials[report.trial.value], report, false},
                      {std::chrono::milliseconds(written)});
        ++written;
      }
      flush(logger, work);
    }
    work.finish();
  });
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

// A piece a turn into each file that the logger wrote.
double write_results(const fs::path& folder, const fs::path& logged, const Sizes& sizes) {
  fs::create_directory(folder);
  const std::uint64_t turns = (sizes.results + kTurn - 1) / kTurn;
  std::vector<std::string> pieces;
  std::deque<AppendFile> files;
  for (const fs::path& file : files_below(logged)) {
    if (file.filename() == "params.json") continue;
    pieces.emplace_back(fs::file_size(file) / turns, 'x');
    files.emplace_back(folder / std::to_string(files.size()), false);
  }
  return time_call([&] {
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      for (std::size_t i = 0; i < files.size(); ++i) files[i].write(pieces[i]);
    }
  });
}

struct Logged {
  std::deque<Trial> trials;
  LastResults last;
};

double log_trials(const fs::path& folder, Logged& logged, const Sizes& sizes) {
  fs::create_directory(folder);
  logged = Logged();
  SideWork work(kMaxWaitingBytes);
  FileLogger logger(folder, make_spec(), work);
  RecordChannel channel;
  channel.add_keeper(logger);
  channel.add_keeper(logged.last);
  return time_call([&] {
    for (std::size_t i = 0; i < sizes.short_trials; ++i) {
      Trial& trial = logged.trials.emplace_back(make_trial(i));
      channel.record(TrialAdded{trial}, {});
      trial.last = make_report(trial, 1);
      channel.record(ResultRecorded{trial, *trial.last, true}, {});
      trial.status = TrialStatus::kTerminated;
      channel.record(TrialChanged{trial}, {});
      flush(logger, work);
    }
    work.finish();
  });
}

double write_trials(const fs::path& folder, const fs::path& logged, const Sizes& sizes) {
  fs::create_directory(folder);
  const std::vector<fs::path> like = files_below(fs::directory_iterator(logged)->path());
  std::vector<std::string> contents;
  for (const fs::path& file : like) contents.push_back(read_file(file));
  return time_call([&] {
    for (std::size_t i = 0; i < sizes.short_trials; ++i) {
      const fs::path trial = folder / std::to_string(i);
      fs::create_directory(trial);
      for (std::size_t j = 0; j < like.size(); ++j) {
        AppendFile(trial / like[j].filename(), false).write(contents[j]);
      }
    }
  });
}

double find_best(const fs::path& folder) {
  const ExperimentSpec spec = make_spec();
  write_file_atomically(folder / "experiment.json",
                        to_json(Config{{"name", spec.name}, {"metric", spec.options.metric}}));
  return time_call([&] {
    if (Analysis::load(folder).best_config().get<double>("lr") <= 0) {
      throw Error(ErrorCode::kBadInput, "no best configuration was found");
    }
  });
}

double read_results(const fs::path& folder) {
  std::vector<fs::path> read;
  for (const fs::path& file : files_below(folder)) {
    if (file.filename() == "result.json" || file.filename() == "params.json") read.push_back(file);
  }
  return time_call([&] {
    for (const fs::path& file : read) {
      if (read_file(file).empty()) throw Error(ErrorCode::kStore, file.string() + " is empty");
    }
  });
}

void measure_files(const Workplace& work, Table& table, const Setting& setting,
                   const Sizes& sizes) {
  fs::path logged;
  for (const std::size_t reporting : {kFew, kMany}) {
    const std::vector<double> results =
        medians(setting.runs,
                {[&] { return log_results(logged = work.fresh("results"), reporting, sizes); },
                 [&] { return write_results(work.fresh("bare"), logged, sizes); }});
    const auto count = static_cast<double>(sizes.results);
    table.rate(fmt::format("results of {} trials into their files", reporting), "/s",
               count / results[0], "writing alone", count / results[1]);
  }

  Logged trials;
  const std::vector<double> seconds = medians(
      setting.runs,
      {[&] { return log_trials(logged = work.fresh("trials"), trials, sizes); },
       [&] { return write_trials(work.fresh("bare"), logged, sizes); },
       [&] {
         return time_call([&] {
           write_results_csv(logged / "results.csv", make_spec(), trials.trials, trials.last);
         });
       },
       [&] {
         const std::string text = read_file(logged / "results.csv");
         return time_call([&] { write_file_atomically(work.fresh("bare.csv"), text); });
       },
       [&] { return find_best(logged); }, [&] { return read_results(logged); }});
  table.seconds("a trial of one step", seconds[0] / sizes.short_trials, "writing alone",
                seconds[1] / sizes.short_trials);
  table.seconds(fmt::format("results.csv of {} trials", sizes.short_trials), seconds[2],
                "writing alone", seconds[3]);
  table.seconds(fmt::format("best configuration of {} trials", sizes.short_trials), seconds[4],
                "reading alone", seconds[5]);
}

void measure_block(Table& table, const Setting& setting, const Sizes& sizes) {
  const ExperimentSpec spec = make_spec();
  std::deque<Trial> trials;
  ExperimentStatus status{.options = spec.options,
                          .trainable = spec.trainable,
                          .experiment_id = experiment_id_of(spec),
                          .trials = trials};
  for (std::size_t i = 0; i < sizes.shown_trials; ++i) {
    Trial& trial = trials.emplace_back(make_trial(i));
    trial.last = make_report(trial, 1);
    // The longest ways to look: those that run are the last ones, the one in error the first.
    if (i + 8 < sizes.shown_trials) trial.status = TrialStatus::kTerminated;
    if (i == 0) trial.status = TrialStatus::kError;
    ++status.counts[static_cast<std::size_t>(trial.status)];
  }
  status.best = TrialNumber{0};
  BlockMemory memory;
  const std::vector<double> seconds =
      medians(10 * setting.runs, {[&] {
                                    return time_call([&] {
                                      if (render_status(status, {}, memory, {120, 40}).empty())
                                        std::abort();
                                    });
                                  },
                                  [&] {
                                    return time_call([&] {
                                      std::size_t running = 0;
                                      for (const Trial& trial : trials)
                                        running += trial.status == TrialStatus::kRunning;
                                      if (running == 0) std::abort();
                                    });
                                  }});
  table.seconds(fmt::format("a block over {} trials", sizes.shown_trials), seconds[0],
                "counting alone", seconds[1]);
}

void measure(const Setting& setting) {
  const Workplace work(setting);
  const Sizes sizes = setting.tiny ? Sizes{2'000, 50, 500} : Sizes{};
  Table table("result files");
  measure_files(work, table, setting, sizes);
  measure_block(table, setting, sizes);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 3);
  return guarded([&] { measure(setting); });
}
