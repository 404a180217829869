// Reports of empty steps that reach journal and files, of one trial and of 8 at once;
// beside a Redis that takes the same entries, and beside writing the same bytes.
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
    "Times tune run of 200,000 reports of empty steps, of one trial and of 8 trials at once, from\n"
    "start to exit. Bare limits: a Redis server alone that appends as many entries of as many "
    "bytes,\n"
    "each flushed to disk; writing the bytes of result.json and progress.csv in as many pieces.\n\n"
    "bench_reports [--tiny] [--runs N]";

// The data that a sweep of this many trials has left on disk.
struct Written {
  std::uint64_t turns = 0;                // entries of the journal
  std::uint64_t journal_bytes = 0;        // of the append-only file
  std::vector<std::uint64_t> file_bytes;  // of each result.json and progress.csv
};

struct Run {
  double seconds = 0;
  fs::path experiment;
};

Run run_sweep(const Workplace& work, unsigned trials, std::uint64_t reports) {
  const std::string file = work.write(
      "sweep.yaml",
      fmt::format("plugin: {}\ntrainable: empty_steps\nconfig: {{steps: {}}}\n"
                  "num_samples: {}\nmetric: x\nmode: max\nseed: 1\n"
                  "stop: {{training_iteration: {}}}\ncpus: {}\n",
                  TUNE_SYNTHETIC_PLUGIN, reports / trials, trials, reports / trials, trials));
  const fs::path storage = work.fresh("results");
  const double seconds =
      time_program({tune_program(), "run", file, "--quiet", "--name", "s", "--storage", storage});
  return {seconds, storage / "s"};
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

Written look_at(const fs::path& experiment, std::uint64_t reports) {
  Written written;
  std::uint64_t found = 0;
  for (const TrialSummary& trial : Analysis::load(experiment).trials()) {
    found += trial.last_result().get<std::uint64_t>("training_iteration");
    for (const char* name : {"result.json", "progress.csv"}) {
      written.file_bytes.push_back(fs::file_size(trial.directory / name));
    }
  }
  if (found != reports) {
    throw Error(ErrorCode::kTrialFailed,
                fmt::format("{} reports were made, {} are there", reports, found));
  }
  written.journal_bytes = bytes_below(experiment / "store" / "appendonlydir");
  const RuntimeDirectory runtime;
  const RedisServer server(
      {.runtime_directory = runtime.path(), .data_directory = experiment / "store"});
  RedisStore store({.address = server.address(), .prefix = read_record(experiment)->prefix});
  written.turns = store.last().value().sequence + 1;
  return written;
}

double redis_alone(const Workplace& work, const Written& written) {
  const RuntimeDirectory runtime;
  const RedisServer server(
      {.runtime_directory = runtime.path(), .data_directory = work.fresh("store")});
  RedisStore store({.address = server.address(), .prefix = "bare"});
  const std::string payload(written.journal_bytes / written.turns, 'x');
  return time_call([&] {
    for (std::uint64_t turn = 0; turn < written.turns; ++turn) store.append({1, turn}, payload);
  });
}

double write_alone(const Workplace& work, const Written& written) {
  return time_call([&] {
    for (const std::uint64_t bytes : written.file_bytes) {
      AppendFile file(work.fresh("bare"), false);
      const std::string piece(bytes / written.turns + 1, 'x');
      for (std::uint64_t done = 0; done < bytes; done += piece.size()) file.write(piece);
    }
  });
}

void measure(const Setting& setting) {
  const Workplace work(setting);
  const std::uint64_t reports = setting.tiny ? 800 : 200'000;
  Written one;
  const std::vector<double> seconds = medians(
      setting.runs, {[&] {
                       const Run run = run_sweep(work, 1, reports);
                       one = look_at(run.experiment, reports);
                       return run.seconds;
                     },
                     [&] { return redis_alone(work, one); }, [&] { return write_alone(work, one); },
                     [&] {
                       const Run run = run_sweep(work, 8, reports);
                       look_at(run.experiment, reports);
                       return run.seconds;
                     }});
  const auto rate = [&](double time) { return static_cast<double>(reports) / time; };
  Table table("reports");
  table.rate("reports of one trial", "/s", rate(seconds[0]), "Redis alone", rate(seconds[1]));
  table.rate("", "/s", rate(seconds[0]), "write alone", rate(seconds[2]));
  table.rate("reports of 8 trials at once", "/s", rate(seconds[3]), "one trial", rate(seconds[0]));
  table.note(
      fmt::format("({} reports, the start and end of the sweep included; one trial: {} turns "
                  "of the journal)",
                  reports, one.turns));
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  return guarded([&] { measure(setting); });
}
