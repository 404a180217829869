// A file that does not take what is written to it for a while, as on a shared file system that
// stands still: here a pipe that nobody has opened yet.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>

#include <map>

#include "core/json.h"
#include "core/platform/files.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Trials whose worker has begun.
std::size_t begun_trials(const Sandbox& box) {
  std::size_t count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(box.path() / "results/s", error)) {
    count += fs::exists(entry.path() / "stdout");
  }
  return count;
}

TEST_CASE("while a trial's file takes nothing the others are launched and end") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: step, fail_how: throw, fail_at: 2, fail_attempts: 9, "
                            "step_ms: 400}",
                  .num_samples = 6,
                  .rest = "stop: {training_iteration: 3}\n",
                  .metric = "count"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1"});
  REQUIRE(Sandbox::eventually(
      [&] { return begun_trials(box) == 1 && !trial_folders(box, "results/s").empty(); }));
  const fs::path first = trial_folders(box, "results/s").at(0);
  REQUIRE(mkfifo((first / "error.txt").c_str(), 0600) == 0);
  CHECK(Sandbox::eventually([&] { return begun_trials(box) == 6; }));
  CHECK_FALSE(fs::exists(box.path() / "results/s/results.csv"));
  CHECK_FALSE(run.ends_within(std::chrono::milliseconds(0)));

  CHECK_HAS(read_file(first / "error.txt"), "told to fail in step");  // it takes what waited
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 1);
  const auto folders = trial_folders(box, "results/s");
  REQUIRE(folders.size() == 6);
  for (const fs::path& folder : folders) {
    const std::string trial = fs::relative(folder, box.path());
    CHECK(lines_of(box.read(trial + "/result.json")).size() == 1);
    if (folder != first) CHECK_HAS(box.read(trial + "/error.txt"), "told to fail in step");
  }
  CHECK(lines_of(box.read("results/s/results.csv")).size() == 6 + 1);
  check_nothing_left(box, "results/s");
}

// One object a line, in the order of what was decided.
TEST_CASE("events.jsonl tells the life of a sweep, and goes on after a resume") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: step, fail_how: segv, fail_at: 2, fail_attempts: 1, "
                            "step_ms: 100}",
                  .num_samples = 2,
                  .rest = "stop: {training_iteration: 20}\ncheckpoint: {frequency: 1}\n"
                          "max_failures: 1\n",
                  .metric = "count"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 6); }));
  run.signal(SIGINT);
  REQUIRE(run.wait().code == 128 + SIGINT);
  const std::string before = box.read("results/s/events.jsonl");
  REQUIRE(box.tune({"resume", "results/s"}).code == 0);
  const std::string text = box.read("results/s/events.jsonl");
  CHECK(text.starts_with(before));

  std::map<std::string, int> count;
  std::vector<std::string> notices;
  double newest = 0;
  for (const std::string& line : lines_of(text)) {
    CAPTURE(line);
    const Value event = parse_json(line, "a line");
    CHECK(event.get<double>("time") >= newest);
    newest = event.get<double>("time");
    ++count[event.get<std::string>("event")];
    if (event.get<std::string>("event") == "notice")
      notices.push_back(event.get<std::string>("text"));
  }
  INFO(text);
  CHECK(notices ==
        std::vector<std::string>{"SIGINT: running trials save and end; once more ends at once"});
  CHECK(count["driver_started"] == 2);
  CHECK(count["node_joined"] == 2);
  CHECK(count["attempt_started"] == 2 + 2 + 2);  // first, after the failure, after the interrupt
  CHECK(count["attempt_ended"] == 6);
  CHECK(count["failure"] == 2);
  CHECK(count["trial_ended"] == 2);
  CHECK(count["experiment_ended"] == 2);
}

TEST_CASE("what the driver says when all is over stands in events.jsonl as well") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.rest = "stop: {training_iteration: 2}\n", .metric = "accuracy"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK_HAS(run.err, "'accuracy' is in no result so far");
  const std::string text = box.read("results/s/events.jsonl");
  INFO(text);
  CHECK_HAS(text, "\"event\":\"notice\",\"text\":\"'accuracy' is in no result so far");
}

}  // namespace
}  // namespace tune
