// The memory that the driver of a real sweep takes for a trial that is over: controller, log files,
// table and journal, with the snapshots it makes; and with a searcher that learns, its history.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/wire.h"
#include "tune/results/analysis.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kMiB = 1024 * 1024;
constexpr const char* kHelp =
    "Runs tune run with one trial and with 100,000 trials of one empty step, and divides what the\n"
    "driver's memory grew to in between (resident, at its peak) by the trials. Bare limit: the\n"
    "bytes of a trial's packed configuration and last result. The same with the searcher gp, of\n"
    "20,000 trials, without the time of its models: all it proposes is drawn; and with tpe, of\n"
    "5,000. These search one number; then random search and tpe, of 5,000 trials, and gp with its\n"
    "models, of 1,000, search 20.\n\n"
    "bench_driver_memory [--tiny] [--runs N]";

// In bytes; 0 once the process is over.
std::uint64_t peak_memory(int pid) {
  std::string status;
  try {
    status = read_file(fmt::format("/proc/{}/status", pid));
  } catch (const Error&) {
    return 0;
  }
  const std::size_t at = status.find("VmHWM:");
  return at == std::string::npos ? 0 : 1024 * std::stoull(status.substr(at + 6));
}

struct Swept {
  double seconds = 0;
  std::uint64_t bytes = 0;  // the driver's memory at its peak
};

struct Sweep {
  const char* searcher;
  std::uint32_t trials;
  int parameters = 1;  // each a number
};

// With the table for a terminal and all files, as users run it.
Swept run_sweep(const Workplace& work, const Sweep& sweep, const fs::path& storage) {
  std::string parameters;
  for (int i = 0; i < sweep.parameters; ++i) {
    parameters += fmt::format(", parameter_{}: {{loguniform: [1e-4, 1]}}", i);
  }
  const std::string file = work.write(
      "sweep.yaml", fmt::format("plugin: {}\ntrainable: empty_steps\nconfig: {{steps: 1{}}}\n"
                                "num_samples: {}\nmetric: x\nmode: max\nseed: 1\n"
                                "stop: {{training_iteration: 1}}\nsearcher: {}\n",
                                TUNE_SYNTHETIC_PLUGIN, parameters, sweep.trials, sweep.searcher));
  Swept swept;
  swept.seconds =
      time_program({tune_program(), "run", file, "--name", "s", "--storage", storage}, {},
                   [&swept](int pid) { swept.bytes = std::max(swept.bytes, peak_memory(pid)); });
  return swept;
}

double packed_bytes(const fs::path& experiment, std::uint32_t trials) {
  const Analysis analysis = Analysis::load(experiment);
  if (analysis.trials().size() != trials) {
    throw Error(ErrorCode::kTrialFailed, fmt::format("{} trials were asked for, {} are there",
                                                     trials, analysis.trials().size()));
  }
  const TrialSummary& trial = analysis.trials().front();
  return static_cast<double>(pack(trial.config()).bytes.size() +
                             pack(Value(Config{{"x", trial.last_result().at("x")}})).bytes.size());
}

void measure(const Setting& setting, const Sweep& sweep) {
  const Workplace work(setting);
  Sweep one = sweep;
  one.trials = 1;
  double bare = 0;
  double seconds = 0;
  const std::vector<double> bytes =
      medians(setting.runs, {[&] { return run_sweep(work, one, work.fresh("one")).bytes; },
                             [&] {
                               const fs::path storage = work.fresh("results");
                               const Swept swept = run_sweep(work, sweep, storage);
                               bare = packed_bytes(storage / "s", sweep.trials);
                               seconds = swept.seconds;
                               return swept.bytes;
                             }});
  Table table("driver memory");
  table.bytes(fmt::format("a trial that is over, of {}, {} parameter{}, searcher {}", sweep.trials,
                          sweep.parameters, sweep.parameters == 1 ? "" : "s", sweep.searcher),
              (bytes[1] - bytes[0]) / sweep.trials, "its packed values", bare);
  table.note(fmt::format("({:.1f} MiB with one trial, {:.1f} MiB with {}; {:.0f} trials/s)",
                         bytes[0] / kMiB, bytes[1] / kMiB, sweep.trials, sweep.trials / seconds));
}

void measure(const Setting& setting) {
  const Sweep sweeps[] = {{"basic_variant", 100'000},
                          {"{gp: {random_share: 1}}", 20'000},
                          {"tpe", 5'000},
                          {"basic_variant", 5'000, 20},
                          {"tpe", 5'000, 20},
                          {"gp", 1'000, 20}};
  for (Sweep sweep : sweeps) {
    if (setting.tiny) sweep.trials = 50;
    measure(setting, sweep);
  }
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 1);
  return guarded([&] { measure(setting); });
}
