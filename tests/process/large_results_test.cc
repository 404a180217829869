// A sweep whose results are large.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMegabyte = 1u << 20;

std::size_t peak_memory(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  std::string word;
  std::size_t kilobytes = 0;
  while (file >> word) {
    if (word == "VmHWM:") file >> kilobytes;
  }
  return kilobytes << 10;
}

// Files that come and go do not matter.
std::size_t bytes_below(const fs::path& folder) {
  std::size_t sum = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    std::error_code gone;
    const auto size = entry->file_size(gone);
    if (!gone) sum += size;
    entry.increment(error);
  }
  return sum;
}

TEST_CASE("the driver's memory and its journal stay far below the results that they have taken") {
  constexpr std::size_t kTrials = 30;
  constexpr std::size_t kSteps = 160;
  constexpr std::size_t kBytes = 50'000;
  Sandbox box;
  box.write("sweep.yaml", yaml({.trainable = "empty_steps",
                                .config = "{steps: 160, text_bytes: 50000, lr: {uniform: [0, 1]}}",
                                .num_samples = kTrials,
                                .rest = "stop: {training_iteration: 160}\n",
                                .metric = "x"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
  std::size_t memory = 0, journal = 0;
  CHECK(Sandbox::eventually(
      [&] {
        memory = std::max(memory, peak_memory(run.pid()));
        journal = std::max(journal, bytes_below(box.path() / "results/s/store"));
        return run.ends_within(std::chrono::microseconds(0));
      },
      std::chrono::seconds(120)));
  const Finished done = run.wait();
  INFO(done.err);
  CHECK(done.code == 0);
  check_complete(box, "results/s", kTrials, kSteps);
  CHECK(kTrials * kSteps * kBytes > 220 * kMegabyte);
  CHECK(memory > 0);
  CHECK(memory < 120 * kMegabyte);
  CHECK(journal > 0);
  CHECK(journal < 150 * kMegabyte);
  check_nothing_left(box, "results/s");
}

}  // namespace
}  // namespace tune
