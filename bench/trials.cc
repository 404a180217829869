// Trials of one empty step a second, each in a process of its own, with journal and files;
// beside a loop that only forks, writes the same files and waits.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "tune/results/analysis.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHelp =
    "Times tune run of 10,000 trials of one empty step, to its exit, as many at a time as there "
    "are\n"
    "cores. Bare limit: a loop that makes a folder for each trial, forks a child that opens "
    "stdout\n"
    "and stderr there and exits, and writes the other files, with as many children at a time.\n\n"
    "bench_trials [--tiny] [--runs N]";

struct Load {
  std::uint32_t trials = 0;
  unsigned slots = 0;  // at a time
};

double run_sweep(const Workplace& work, const Load& load, const fs::path& storage) {
  const std::string file = work.write(
      "sweep.yaml", fmt::format("plugin: {}\ntrainable: empty_steps\nconfig: {{steps: 1}}\n"
                                "num_samples: {}\nmetric: x\nmode: max\nseed: 1\n"
                                "stop: {{training_iteration: 1}}\ncpus: {}\n",
                                TUNE_SYNTHETIC_PLUGIN, load.trials, load.slots));
  return time_program(
      {tune_program(), "run", file, "--quiet", "--name", "s", "--storage", storage});
}

// The files of one trial as tune wrote them.
struct TrialContents {
  std::string out, err, params, json, csv;
};

TrialContents contents_of(const fs::path& experiment, std::uint32_t trials) {
  const Analysis analysis = Analysis::load(experiment);
  if (analysis.trials().size() != trials) {
    throw Error(ErrorCode::kTrialFailed, fmt::format("{} trials were asked for, {} are there",
                                                     trials, analysis.trials().size()));
  }
  const fs::path folder = analysis.trials().front().directory;
  return {read_file(folder / "stdout"), read_file(folder / "stderr"),
          read_file(folder / "params.json"), read_file(folder / "result.json"),
          read_file(folder / "progress.csv")};
}

void write_new(const fs::path& file, const std::string& text) {
  AppendFile(file, false).write(text);
}

[[noreturn]] void be_child(const fs::path& folder, const TrialContents& contents) {
  write_new(folder / "stdout", contents.out);
  write_new(folder / "stderr", contents.err);
  _exit(0);
}

double fork_alone(const Workplace& work, const Load& load, const TrialContents& contents) {
  const fs::path root = work.fresh("bare");
  fs::create_directory(root);
  return time_call([&] {
    unsigned running = 0;
    const auto wait_for_one = [&running] {
      while (wait(nullptr) < 0 && errno == EINTR) {
      }
      --running;
    };
    for (std::uint32_t trial = 0; trial < load.trials; ++trial) {
      const fs::path folder = root / std::to_string(trial);
      fs::create_directory(folder);
      if (running == load.slots) wait_for_one();
      const pid_t child = fork();
      if (child < 0) throw Error(ErrorCode::kProcess, "fork failed");
      if (child == 0) be_child(folder, contents);
      ++running;
      write_new(folder / "params.json", contents.params);
      write_new(folder / "result.json", contents.json);
      write_new(folder / "progress.csv", contents.csv);
    }
    while (running > 0) wait_for_one();
  });
}

void measure(const Setting& setting) {
  const Workplace work(setting);
  const Load load{setting.tiny ? 20u : 10'000u, std::max(1u, std::thread::hardware_concurrency())};
  TrialContents contents;
  const std::vector<double> seconds =
      medians(setting.runs, {[&] {
                               const fs::path storage = work.fresh("results");
                               const double time = run_sweep(work, load, storage);
                               contents = contents_of(storage / "s", load.trials);
                               return time;
                             },
                             [&] { return fork_alone(work, load, contents); }});
  Table table("trials");
  table.rate(fmt::format("{} trials of one step, {} at a time", load.trials, load.slots), "/s",
             load.trials / seconds[0], "fork and the same files", load.trials / seconds[1]);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 3);
  return guarded([&] { measure(setting); });
}
