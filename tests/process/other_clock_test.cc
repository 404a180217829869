// Machines whose clocks are hours off.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <ctime>
#include <map>
#include <string>

#include "core/json.h"
#include "process/joinable.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// An agent whose clock is that far off, with all that it starts.
std::unique_ptr<Running> agent_off_by(Joinable& sweep, int hours,
                                      const std::vector<std::string>& more = {}) {
  sweep.box.set("LD_PRELOAD", TUNE_BINARY_DIR "/tests/libother_clock.so");
  sweep.box.set("CLOCK_SHIFT_S", std::to_string(hours * 3600));
  auto agent = sweep.agent(more);
  sweep.box.set("LD_PRELOAD", "");
  return agent;
}

TEST_CASE("the clock is another one where it is to be") {
  Sandbox box;
  box.set("LD_PRELOAD", TUNE_BINARY_DIR "/tests/libother_clock.so");
  box.set("CLOCK_SHIFT_S", std::to_string(-7 * 3600));
  const long told =
      std::stol(box.run({"python3", "-c", "import time; print(int(time.time()))"}).out);
  CHECK(std::time(nullptr) - told >= 7 * 3600);
}

TEST_CASE("machines whose clocks are hours off take part as all others do") {
  const std::time_t begin = std::time(nullptr);
  Joinable sweep(joinable_sweep(14, 100, "lease_s: 5\npatience_s: 60\n"));
  const auto ahead = agent_off_by(sweep, 7, {"--until", "10h"});
  const auto behind = agent_off_by(sweep, -9);
  CHECK(Sandbox::eventually([&] { return sweep.count("ready") == 3; }, seconds(60)));
  // What is left of an allocation is a time, and not a time of day.
  CHECK(sweep.count("in 9 h") + sweep.count("in 10 h") == 1);
  CHECK(Sandbox::eventually(
      [&] { return sweep.runs_a_trial(*ahead) && sweep.runs_a_trial(*behind); }, seconds(60)));
  // Nor does another driver need any machine's clock.
  sweep.run->signal(SIGKILL);
  sweep.run->wait();
  sweep.run.reset(new Running(sweep.box.start_tune({"resume", "results/s"})));
  sweep.finish();
  check_complete(sweep.box, "results/s", 14, 8);
  const std::time_t end = std::time(nullptr);
  const std::string events = sweep.box.read("results/s/events.jsonl");
  CHECK_FALSE(testing::has(events, "is lost"));
  CHECK_FALSE(testing::has(events, "\"event\":\"failure\""));
  // Whoever ran the trial, the driver's clock dates it.
  for (const fs::path& trial : trial_folders(sweep.box, "results/s")) {
    for (const std::string& line :
         lines_of(sweep.box.read(fs::relative(trial / "result.json", sweep.box.path())))) {
      const Value result = parse_json(line, "result.json");
      const auto timestamp = static_cast<std::time_t>(result.get<double>("timestamp"));
      CHECK(timestamp >= begin);
      CHECK(timestamp <= end);
      CHECK(result.get<double>("time_total_s") < 3600);
    }
  }
  for (const auto& agent : {&ahead, &behind}) CHECK((*agent)->wait(seconds(60)).code == 0);
}

}  // namespace
}  // namespace tune
