// The time of tune resume over the journal of a large sweep whose driver was killed just before it
// could report the end; beside a Redis server that loads the same file and hands it out.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/redis_server.h"
#include "core/platform/redis_store.h"
#include "core/platform/runtime_directory.h"
#include "tune/results/analysis.h"
#include "tune/results/experiment_folder.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHelp =
    "Runs a sweep of 10,000 trials of 10 reports each, puts it back to where its driver has "
    "recorded\n"
    "all but the end, and times tune resume until it is done; checks that nothing is lost. Bare\n"
    "limit: a Redis server that loads the same store, and reading snapshot and entries from it.\n\n"
    "bench_resume [--tiny] [--runs N]";

constexpr std::uint32_t kReportsEach = 10;

struct Sweep {
  fs::path directory;
  std::uint32_t trials = 0;
};

Sweep run_sweep(const Workplace& work, std::uint32_t trials) {
  const std::string file = work.write(
      "sweep.yaml", fmt::format("plugin: {}\ntrainable: empty_steps\nconfig: {{steps: {}}}\n"
                                "num_samples: {}\nmetric: x\nmode: max\nseed: 1\n"
                                "stop: {{training_iteration: {}}}\n",
                                TUNE_SYNTHETIC_PLUGIN, kReportsEach, trials, kReportsEach));
  const fs::path storage = work.fresh("results");
  time_program({tune_program(), "run", file, "--quiet", "--name", "s", "--storage", storage});
  return {storage / "s", trials};
}

// As a driver leaves it that is killed between its last journal entry and its last words.
void forget_the_end(const Sweep& sweep) {
  const fs::path file = sweep.directory / "run.json";
  std::string text = read_file(file);
  const std::string ended = "\"finished\"";
  const std::size_t at = text.find(ended);
  if (at == std::string::npos) {
    throw Error(ErrorCode::kBadInput, fmt::format("{} does not say {}", file.string(), ended));
  }
  write_file_atomically(file, text.replace(at, ended.size(), "\"running\""));
  fs::remove(sweep.directory / "results.csv");
}

double resume(const Sweep& sweep) {
  forget_the_end(sweep);
  return time_program({tune_program(), "resume", sweep.directory, "--quiet"});
}

void check_nothing_is_lost(const Sweep& sweep) {
  const Analysis analysis = Analysis::load(sweep.directory);
  std::uint64_t reports = 0;
  std::uint64_t terminated = 0;
  for (const TrialSummary& trial : analysis.trials()) {
    reports += trial.results().size();
    terminated += trial.status == TrialStatus::kTerminated ? 1 : 0;
  }
  if (terminated == sweep.trials && reports == std::uint64_t{kReportsEach} * sweep.trials) return;
  throw Error(ErrorCode::kTrialFailed,
              fmt::format("of {} trials {} are TERMINATED; of {} reports {} are there",
                          sweep.trials, terminated, kReportsEach * sweep.trials, reports));
}

double redis_alone(const Workplace& work, const Sweep& sweep) {
  const fs::path data = work.fresh("store");
  fs::copy(sweep.directory / "store", data, fs::copy_options::recursive);
  const std::string prefix = read_record(sweep.directory)->prefix;
  const RuntimeDirectory runtime;
  return time_call([&] {
    const RedisServer server({.runtime_directory = runtime.path(), .data_directory = data});
    RedisStore store({.address = server.address(), .prefix = prefix});
    std::size_t bytes = store.get("snapshot").value_or("").size();
    constexpr std::size_t kBatch = 512;
    EntryId last;
    for (std::vector<Entry> batch;;) {
      batch = store.read(last, kBatch);
      for (const Entry& entry : batch) bytes += entry.payload.size();
      if (batch.size() < kBatch) break;
      last = batch.back().id;
    }
    if (bytes == 0) throw Error(ErrorCode::kStore, "the journal is empty");
  });
}

void measure(const Setting& setting) {
  const Workplace work(setting);
  const Sweep sweep = run_sweep(work, setting.tiny ? 20u : 10'000u);
  const std::vector<double> seconds = medians(
      setting.runs, {[&] { return resume(sweep); }, [&] { return redis_alone(work, sweep); }});
  check_nothing_is_lost(sweep);
  Table table("resume");
  table.seconds(fmt::format("{} trials, {} reports", sweep.trials, sweep.trials * kReportsEach),
                seconds[0], "Redis loads and hands it out", seconds[1]);
  table.note("(every trial is TERMINATED, every report is in its file)");
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  return guarded([&] { measure(setting); });
}
