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
    "5,000.\n\n"
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

// With the table for a terminal and all files, as users run it.
Swept run_sweep(const Workplace& work, const char* searcher, std::uint32_t trials,
                const fs::path& storage) {
  const std::string file = work.write(
      "sweep.yaml",
      fmt::format("plugin: {}\ntrainable: empty_steps\nconfig: {{steps: 1, lr: {{loguniform: "
                  "[1e-4, 1]}}}}\nnum_samples: {}\nmetric: x\nmode: max\nseed: 1\n"
                  "stop: {{training_iteration: 1}}\nsearcher: {}\n",
                  TUNE_SYNTHETIC_PLUGIN, trials, searcher));
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

void measure(const Setting& setting, const char* searcher, std::uint32_t trials) {
  const Workplace work(setting);
  double bare = 0;
  double seconds = 0;
  const std::vector<double> bytes =
      medians(setting.runs, {[&] { return run_sweep(work, searcher, 1, work.fresh("one")).bytes; },
                             [&] {
                               const fs::path storage = work.fresh("results");
                               const Swept swept = run_sweep(work, searcher, trials, storage);
                               bare = packed_bytes(storage / "s", trials);
                               seconds = swept.seconds;
                               return swept.bytes;
                             }});
  Table table("driver memory");
  table.bytes(fmt::format("a trial that is over, of {}, searcher {}", trials, searcher),
              (bytes[1] - bytes[0]) / trials, "its packed values", bare);
  table.note(fmt::format("({:.1f} MiB with one trial, {:.1f} MiB with {}; {:.0f} trials/s)",
                         bytes[0] / kMiB, bytes[1] / kMiB, trials, trials / seconds));
}

void measure(const Setting& setting) {
  measure(setting, "basic_variant", setting.tiny ? 100 : 100'000);
  measure(setting, "{gp: {random_share: 1}}", setting.tiny ? 100 : 20'000);
  measure(setting, "tpe", setting.tiny ? 100 : 5'000);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 1);
  return guarded([&] { measure(setting); });
}
