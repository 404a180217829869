// What trials use, as agents measure it.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

std::vector<Value> usage_of(const Sandbox& box, const fs::path& trial) {
  std::vector<Value> lines;
  for (const std::string& line :
       lines_of(box.read("results/s/" + trial.filename().string() + "/usage.jsonl"))) {
    lines.push_back(parse_json(line, "usage.jsonl"));
  }
  return lines;
}

TEST_CASE("usage.jsonl tells what a trial and its children use of processors, memory and GPUs") {
  Sandbox box;
  box.set("LD_LIBRARY_PATH", std::string(TUNE_BINARY_DIR) + "/tests/fake_nvml");
  box.set("FAKE_GPUS", "2");
  box.write("sweep.yaml",
            "command:\n  - sh\n  - -c\n  - |\n"
            "    (while :; do :; done) &\n"
            "    sleep 9\n"
            "    kill $!\n"
            "    echo 'tune: {\"loss\": 1}'\n"
            "config: {x: {grid_search: [1]}}\nmetric: loss\nmode: min\n"
            "resources_per_trial: {cpu: 1, gpu: 1}\n");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--quiet"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const std::vector<fs::path> trials = trial_folders(box, "results/s");
  REQUIRE(trials.size() == 1);
  const std::vector<Value> lines = usage_of(box, trials.front());
  REQUIRE(lines.size() >= 2);
  CHECK(lines.size() <= 5);
  double most = 0, most_memory = 0;
  for (const Value& line : lines) {
    CHECK(line.at("attempt").integer() == 1);
    CHECK(line.at("time").number() > 1e9);
    most_memory = std::max(most_memory, line.at("memory_bytes").number());
    most = std::max(most, line.at("cpus").number());
    REQUIRE(line.at("gpus").list().size() == 1);
    const Value& gpu = line.at("gpus").list().front();
    CHECK(gpu.at("gpu").integer() == 0);
    CHECK(gpu.at("busy").number() == 0.93);
    CHECK(gpu.at("memory_bytes").integer() == std::int64_t{20} << 30);
  }
  CHECK(most_memory > 100'000);  // the last line may be of processes that have just ended
  CHECK(most_memory < 4e9);
  CHECK(most > 0.02);  // of one that never rests, on a machine that may be busy
  CHECK(most < 1.5);
}

}  // namespace
}  // namespace tune
