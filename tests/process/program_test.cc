// Programs that call tune::run.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>

#include "core/refusal.h"
#include "process/sandbox.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

std::string program(const std::string& name) {
  return std::string(TUNE_BINARY_DIR) + "/tests/" + name;
}

TEST_CASE("two sweeps in one program, the second around the first's best configuration") {
  Sandbox box;
  const Finished run = box.run({program("two_runs")});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto lines = lines_of(run.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "before the first run");  // once: workers do not repeat it
  const std::string around = lines[1].substr(7, lines[1].find(' ', 7) - 7);
  CHECK_HAS(lines[1], "best was " + around);
  CHECK(fs::exists(box.path() / "results/first/results.csv"));
  CHECK(lines_of(box.read("results/second/results.csv")).size() == 5);
  CHECK(box.is_quiet());
}

TEST_CASE("the program of the API page runs as printed") {
  Sandbox box;
  const Finished run = box.run({program("api_page"), "--cpus", "2", "--gpus", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto lines = lines_of(run.out);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("Best config is: {\"lr\":"));
  CHECK(lines[1].starts_with("restored on "));
  CHECK_HAS(run.err, "32/32 (32 TERMINATED)");  // 16 samples of a grid of 2
  CHECK(lines_of(box.read("result.csv")).size() == 33);
}

TEST_CASE("a killed program is resumed by executing it again") {
  Sandbox whole_box;
  const Finished whole = whole_box.run({program("two_runs"), "--quiet"});
  REQUIRE(whole.code == 0);

  Sandbox box;
  box.set("TWO_RUNS_PAUSE_MS", "50");
  {
    Running run = box.start({program("two_runs"), "--quiet"});
    REQUIRE(Sandbox::eventually([&] {
      const auto files = box.of_trials("results/second", "result.json");
      return std::ranges::any_of(files, [&](const auto& file) { return !box.read(file).empty(); });
    }));
    run.signal(SIGKILL);
    run.wait();
  }
  CHECK(box.is_quiet());
  // The second sweep goes on; the first one's recorded result decides where it searches.
  const Finished resumed =
      box.run({std::string(TUNE_BINARY_DIR) + "/bin/tune", "resume", "results/second"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  const auto rows = lines_of(box.read("results/second/results.csv"));
  REQUIRE(rows.size() == 5);
  for (std::size_t i = 1; i < rows.size(); ++i) CHECK_HAS(rows[i], "TERMINATED");
  REQUIRE(!resumed.out.empty());
  CHECK(lines_of(resumed.out).back() == lines_of(whole.out).back());
}

TEST_CASE("a scheduler and a searcher of the program's own pause, choose and propose") {
  Sandbox box;
  const Finished run = box.run({program("own_parts"), "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto lines = lines_of(run.out);
  REQUIRE(lines.size() == 2);
  // x is 0, 0.2, 0.4, 0.6; the optimum 0.3: 1 and 2 outlive the first step, and 1 of equals the
  // second.
  CHECK(lines[0] == R"({"x":0.2})");
  CHECK(lines[1] == "1 4 2 1 ");
  CHECK_HAS(run.err, "Halving together");
}

TEST_CASE("a custom scheduler and searcher go on where a killed program stood") {
  for (const std::size_t kill_after_results : {1, 4, 7}) {
    CAPTURE(kill_after_results);
    Sandbox box;
    box.set("PAUSE_MS", "40");
    {
      Running run = box.start({program("own_parts"), "--cpus", "2", "--quiet"});
      const auto enough = [&] {
        std::size_t results = 0;
        for (const fs::path& file : box.of_trials("results/own", "result.json")) {
          results += lines_of(box.read(file)).size();
        }
        return results >= kill_after_results;
      };
      REQUIRE(Sandbox::eventually(enough));
      run.signal(SIGKILL);
      run.wait();
    }
    CHECK(box.is_quiet());
    const Finished resumed =
        box.run({std::string(TUNE_BINARY_DIR) + "/bin/tune", "resume", "results/own", "--quiet"});
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    CHECK_HAS(resumed.out, "1 4 2 1 ");
  }
}

// Sorted; 1 4 2 1 steps.
const std::vector<std::string> kAllTold = {
    "ended 0",    "ended 1",    "ended 2",    "ended 3",    "over",       "result 0 1",
    "result 1 1", "result 1 2", "result 1 3", "result 1 4", "result 2 1", "result 2 2",
    "result 3 1", "started 0",  "started 1",  "started 2",  "started 3"};

TEST_CASE("a program's callback is told everything once, and what it throws is said once") {
  Sandbox box;
  const Finished run = box.run({program("own_parts"), "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  auto told = lines_of(box.read("told"));
  REQUIRE_FALSE(told.empty());
  CHECK(told.back() == "over");
  std::sort(told.begin(), told.end());
  CHECK(told == kAllTold);
  const std::string thrown = "callback 1: it threw: no checkpoints, please";
  CHECK_HAS(run.err, thrown);
  CHECK(run.err.find(thrown) == run.err.rfind(thrown));
}

TEST_CASE("a program's callback is told the rest after a kill") {
  Sandbox box;
  box.set("PAUSE_MS", "400");
  {
    Running run = box.start({program("own_parts"), "--cpus", "2", "--quiet"});
    REQUIRE(
        Sandbox::eventually([&] { return box.read("told").find("result") != std::string::npos; }));
    run.signal(SIGKILL);
    run.wait();
  }
  const std::string tune = std::string(TUNE_BINARY_DIR) + "/bin/tune";
  const Finished wrong = box.run({tune, "resume", "results/own", "--time-budget-s=-1"});
  CHECK(wrong.code == 2);
  CHECK_HAS(wrong.err, "--time-budget-s -1: give seconds, or 0 for no end");
  const Finished resumed =
      box.run({tune, "resume", "results/own", "--quiet", "--time-budget-s", "600"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  // The last ones before the kill may be told again.
  auto told = lines_of(box.read("told"));
  std::sort(told.begin(), told.end());
  told.erase(std::unique(told.begin(), told.end()), told.end());
  CHECK(told == kAllTold);
}

// A thread of it holds the allocator's lock in the moment of each fork.
TEST_CASE("a program with threads is executed again for agent and trials, with one warning") {
  Sandbox box;
  const Finished run = box.run({program("threads_before_run")});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.out == "trials: 3\n");
  CHECK_HAS(run.err, "warning: this program cannot be forked");
  CHECK_HAS(run.err, "3 threads");
  CHECK_HAS(run.err, "3 TERMINATED");
  CHECK(box.is_quiet());
}

TEST_CASE("a program's options come from its arguments") {
  Sandbox box;
  const Finished help = box.run({program("two_runs"), "--help"});
  CHECK(help.code == 0);
  CHECK_HAS(help.out, "--num-samples");
  const Finished wrong = box.run({program("two_runs"), "--num-sample", "3"});
  CHECK(wrong.code == 2);
}

TEST_CASE("an uncaught error is printed and gives the command line's exit code") {
  Sandbox box;
  REQUIRE(box.run({program("two_runs"), "--quiet"}).code == 0);
  const Finished again = box.run({program("two_runs"), "--quiet"});
  CHECK(again.code == 2);
  CHECK_HAS(again.err, "error: ");
  CHECK_HAS(again.err, "finished");
}

}  // namespace
}  // namespace tune
