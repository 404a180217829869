// Sweeps that are written for other tools while they run.
#include <doctest/doctest.h>

#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "core/event_file.h"
#include "core/refusal.h"
#include "platform/one_answer.h"
#include "process/outcome.h"
#include "process/sweep.h"
#include "skip.h"
#include "tune/export/fake_mlflow.h"
#include "tune/results/result_scan.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "events.out.tfevents.0000000000.tune";

std::string slow_sweep(const std::string& logger = "tensorboard") {
  return yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 30}",
               .num_samples = 3,
               .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 2}\n"
                       "loggers: [" +
                       logger + "]\n"});
}

// The events of the steps that TensorBoard shows.
std::map<std::uint64_t, std::string> shown_steps(const std::string& bytes) {
  std::map<std::uint64_t, std::string> steps;
  const std::size_t end = for_each_record(bytes, [&](std::string_view event) {
    const EventHead head = head_of_event(event);
    if (head.is_restart) {
      steps.erase(steps.lower_bound(head.step), steps.end());
    } else if (head.step > 0) {
      CHECK(steps.emplace(head.step, event).second);  // not twice
    }
  });
  CHECK(end == bytes.size());
  return steps;
}

void check_tensorboard(const Sandbox& box, const std::string& experiment) {
  CHECK(fs::exists(box.path() / experiment / "tensorboard" / kFile));
  for (const fs::path& trial : trial_folders(box, experiment)) {
    const std::string id = trial.filename();
    const auto steps = shown_steps(box.read(experiment + "/tensorboard/" + id + "/" + kFile));
    const auto lines = lines_of(box.read(experiment + "/" + id + "/result.json"));
    REQUIRE(steps.size() == lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ScalarsEvent value;
      scan_numbers(lines[i], id, [&](std::string_view path, double number) {
        if (path == "mean_accuracy") value.add(path, number);
      });
      const std::string expected(value.event(0, i + 1));
      const std::size_t summary = expected.find("mean_accuracy") - 2;
      CHECK(steps.at(i + 1).find(expected.substr(summary)) != std::string::npos);
    }
  }
}

TEST_CASE("a sweep that is killed and resumed has every result in TensorBoard's files once") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep());
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] {
      return has_results(box, "results/s", 4) && fs::exists(box.path() / "results/s/tensorboard");
    }));
    run.signal(SIGKILL);
    run.wait();
  }
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_FALSE(testing::has(resumed.err, "logger tensorboard"));
  check_complete(box, "results/s", 3, 8);
  check_tensorboard(box, "results/s");
  // A further export finds nothing to write.
  const std::string id = trial_folders(box, "results/s").front().filename();
  const std::string file = "results/s/tensorboard/" + id + "/" + kFile;
  const std::string before = box.read(file);
  CHECK(box.tune({"export", "--tensorboard", "results/s"}).code == 0);
  CHECK(box.read(file) == before);
}

TEST_CASE("a logger that cannot write is a notice with the way out, and the sweep goes on") {
  Sandbox box;
  box.write("sweep.yaml", slow_sweep());
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
    run.signal(SIGINT);
    run.wait();
  }
  fs::remove_all(box.path() / "results/s/tensorboard");
  box.write("results/s/tensorboard", "a file stands in its place");
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_HAS(resumed.err, "logger tensorboard: making the folder");
  CHECK_HAS(resumed.err, "tune export --tensorboard results/s writes the rest");
  check_complete(box, "results/s", 3, 8);
  fs::remove(box.path() / "results/s/tensorboard");
  CHECK(box.tune({"export", "--tensorboard", "results/s"}).code == 0);
  check_tensorboard(box, "results/s");
}

// As MLflow holds it: each iteration of each trial once.
void check_mlflow(const testing::FakeMlflow& server, const Sandbox& box, std::size_t steps) {
  CHECK(server.runs.size() == trial_folders(box, "results/s").size() + 1);
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    const testing::FakeMlflow::Run* run = server.named(trial.filename());
    REQUIRE(run != nullptr);
    CHECK(run->status == "FINISHED");
    std::set<std::string> seen;
    for (const std::string& value : run->values("mean_accuracy")) {
      seen.insert(value.substr(0, value.find(':')));
    }
    CHECK(seen.size() == steps);
  }
}

TEST_CASE("a sweep that is killed and resumed has each of its runs in MLflow once") {
  if (!testing::has_libcurl()) return testing::skip("there is no libcurl here");
  testing::FakeMlflow fake;
  testing::ServedMlflow served(fake);
  setenv("MLFLOW_TRACKING_URI", served.url().c_str(), 1);
  Sandbox box;
  box.write("sweep.yaml", slow_sweep("mlflow"));
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 4); }));
    run.signal(SIGKILL);
    run.wait();
  }
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_FALSE(testing::has(resumed.err, "logger mlflow"));
  served.end();
  check_mlflow(fake, box, 8);
  CHECK(fake.named("s")->status == "FINISHED");
  CHECK(box.read("results/s/experiment.json").find(served.url()) == std::string::npos);
  unsetenv("MLFLOW_TRACKING_URI");
}

TEST_CASE("mlflow without the address of a server is refused before anything is made") {
  unsetenv("MLFLOW_TRACKING_URI");
  Sandbox box;
  box.write("sweep.yaml", slow_sweep("mlflow"));
  const Finished refused = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "loggers: mlflow: MLFLOW_TRACKING_URI is not set: give the address");
  CHECK_HAS(refused.err,
            "or leave mlflow out, and send everything later with tune export --mlflow");
  CHECK_FALSE(std::filesystem::exists(box.path() / "results"));
}

TEST_CASE("a sweep whose MLflow is not there goes on, and the export sends all of it") {
  if (!testing::has_libcurl()) return testing::skip("there is no libcurl here");
  setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1", 1);
  Sandbox box;
  box.write("sweep.yaml", slow_sweep("mlflow"));
  const Finished ended = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  check_complete(box, "results/s", 3, 8);
  CHECK_HAS(ended.err, "logger mlflow: asking the MLflow server at http://127.0.0.1:1: ");
  CHECK_HAS(ended.err, "tune export --mlflow results/s writes the rest");
  testing::FakeMlflow fake;
  testing::ServedMlflow served(fake);
  setenv("MLFLOW_TRACKING_URI", served.url().c_str(), 1);
  CHECK(box.tune({"export", "--mlflow", "results/s"}).code == 0);
  served.end();
  check_mlflow(fake, box, 8);
  unsetenv("MLFLOW_TRACKING_URI");
}

TEST_CASE("what is to be done at the end is done by the start that was told so, and no other") {
  Sandbox box;
  box.write(
      "sweep.yaml",
      slow_sweep() + "on_end: {command: [sh, -c, 'echo $TUNE_STATUS $TUNE_TRIALS >> told']}\n");
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
    run.signal(SIGINT);
    run.wait();
  }
  CHECK(box.read("told").starts_with("interrupted "));
  CHECK(box.read("results/s/experiment.json").find("on_end") == std::string::npos);
  CHECK(box.tune({"resume", "results/s"}).code == 0);
  CHECK(lines_of(box.read("told")).size() == 1);
  const Finished more =
      box.tune({"resume", "results/s", "--num-samples", "4", "--on-end", "/no/such/program"});
  CHECK(more.code == 0);
  CHECK_HAS(more.err, "on_end: /no/such/program: ");
  CHECK(box.tune({"resume", "results/s", "--webhook", "ftp://x"}).code == 2);
}

}  // namespace
}  // namespace tune
