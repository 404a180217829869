// The speed at which an experiment's folder becomes the files of other tools; beside reading the
// folder's files and writing the same bytes.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "tune/export/optuna.h"
#include "tune/export/tensorboard.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHelp =
    "Times exports: 64 trials with four metrics to TensorBoard's files, and 100,000 trials with\n"
    "nine reports each to a study of Optuna. Bare limit: the files that are read, read, and the\n"
    "bytes that are written, written.\n\n"
    "bench_export [--tiny] [--runs N]";

struct Sizes {
  int long_trials = 64;
  int results = 5'000;
  int trials = 100'000;
  int reports = 9;
};

// The experiment that a driver leaves.
void make_experiment(const fs::path& folder, int trials, int reports) {
  fs::create_directories(folder);
  AppendFile(folder / "experiment.json", true)
      .write(R"({"version": 2, "name": "bench", "trainable": "T", "metric": "mean_accuracy",)"
             R"( "mode": "max", "num_samples": 1, "config": {"lr": {"loguniform": [0.0001, 1.0]},)"
             R"( "momentum": {"uniform": [0.1, 0.9]}, "act": {"choice": ["relu", "tanh"]}}})");
  std::string events;
  for (int trial = 0; trial < trials; ++trial) {
    const std::string id = fmt::format("2f1e0_{:05}", trial);
    fs::create_directory(folder / id);
    AppendFile(folder / id / "params.json", false)
        .write(fmt::format("{{\"lr\":{},\"momentum\":0.5,\"act\":\"{}\"}}\n",
                           0.001 + trial % 900 * 0.001, trial % 2 == 0 ? "relu" : "tanh"));
    std::string lines;
    for (int step = 1; step <= reports; ++step) {
      const double x = 1.0 / (step + trial % 97 + 3);
      lines += fmt::format(
          "{{\"mean_accuracy\":{},\"loss\":{{\"train\":{},\"test\":{}}},\"epoch\":{},"
          "\"training_iteration\":{},\"done\":{},\"trial_id\":\"{}\",\"experiment_tag\":\"{}\","
          "\"time_this_iter_s\":1.234567,\"time_total_s\":{},\"time_since_restore\":{},"
          "\"iterations_since_restore\":{},\"timestamp\":1795000000,"
          "\"date\":\"2026-11-22_12-00-00\",\"hostname\":\"node\",\"node_ip\":\"10.0.0.1\","
          "\"pid\":4711}}\n",
          1 - x, 3 * x, 3.3 * x, step, step, step == reports, id, trial, 1.25 * step, 1.25 * step,
          step);
    }
    AppendFile(folder / id / "result.json", false).write(lines);
    const auto event = [&](const char* kind, const std::string& rest) {
      events += fmt::format(
          "{{\"time\":1795000000.5,\"event\":\"{}\",\"trial\":\"{}\",\"attempt\":1{}}}\n", kind, id,
          rest);
    };
    event("attempt_started", R"(,"node":"node","pid":4711,"gpus":[],"after_iteration":0)");
    event("attempt_ended", R"(,"outcome":"completed","iteration":9)");
    event("trial_ended", R"(,"status":"TERMINATED","iteration":9)");
  }
  AppendFile(folder / "events.jsonl", true).write(events);
}

double read_all(const fs::path& folder) {
  return time_call([&] {
    std::size_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_directory()) continue;
      bytes += read_file(entry.path() / "params.json").size();
      bytes += read_file(entry.path() / "result.json").size();
    }
    if (bytes == 0) throw Error(ErrorCode::kIo, "nothing was read");
  });
}

double write_again(const std::vector<std::string>& texts, const fs::path& folder) {
  fs::create_directories(folder);
  return time_call([&] {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      AppendFile(folder / std::to_string(i), true).write(texts[i]);
    }
  });
}

std::vector<std::string> contents(const fs::path& path) {
  std::vector<std::string> texts;
  if (fs::is_regular_file(path)) return {read_file(path)};
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) texts.push_back(read_file(entry.path()));
  }
  return texts;
}

void measure_tensorboard(const Workplace& work, Table& table, const Setting& setting,
                         const Sizes& sizes) {
  const fs::path folder = work.fresh("experiment");
  make_experiment(folder, sizes.long_trials, sizes.results);
  fs::path target;
  const auto export_all = [&] {
    target = work.fresh("tensorboard");
    return time_call([&] {
      TensorBoardExport out(folder, target);
      out.write_news([] { return false; });
      out.finish();
    });
  };
  const auto bare = [&] {
    return read_all(folder) + write_again(contents(target), work.fresh("bare"));
  };
  const std::vector<double> seconds = medians(setting.runs, {export_all, bare});
  const double scalars = 6.0 * sizes.long_trials * sizes.results;  // four metrics, two times
  table.rate("scalars into TensorBoard's files", "/s", scalars / seconds[0],
             "reading and writing alone", scalars / seconds[1]);
}

void measure_optuna(const Workplace& work, Table& table, const Setting& setting,
                    const Sizes& sizes) {
  const fs::path folder = work.fresh("experiment");
  make_experiment(folder, sizes.trials, sizes.reports);
  fs::path file;
  const auto export_all = [&] {
    file = work.fresh("study");
    return time_call([&] {
      const auto exported = export_to_optuna(folder, file);
      if (exported.trials != static_cast<std::uint64_t>(sizes.trials) ||
          !exported.problems.empty()) {
        throw Error(ErrorCode::kIo, "not all trials were exported");
      }
    });
  };
  const auto bare = [&] {
    return read_all(folder) + write_again(contents(file), work.fresh("bare"));
  };
  const std::vector<double> seconds = medians(setting.runs, {export_all, bare});
  table.seconds(fmt::format("{} trials into a study of Optuna", sizes.trials), seconds[0],
                "reading and writing alone", seconds[1]);
}

void measure(const Setting& setting) {
  const Workplace work(setting);
  const Sizes sizes = setting.tiny ? Sizes{4, 20, 50, 3} : Sizes{};
  Table table("exports");
  measure_tensorboard(work, table, setting, sizes);
  measure_optuna(work, table, setting, sizes);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 3);
  return guarded([&] { measure(setting); });
}
