// Users' orders to sweeps that run: real commands, drivers that are killed, groups and programs.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"
#include "process/trainable_kind.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Trials of 8 steps, which take longer than the commands that are to find them running.
std::string changing_sweep(int trials, const std::string& rest = {}) {
  return yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 250}",
               .num_samples = trials,
               .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 2}\n" + rest});
}

bool says(const Sandbox& box, const std::string& text) {
  return box.read("results/s/events.jsonl").find(text) != std::string::npos;
}

// While the disk is so busy that the journal's server takes seconds, the driver says to ask again.
bool is_to_be_given_again(const Finished& finished) {
  return finished.code != 0 && finished.err.find("give the order again later") != std::string::npos;
}

// The command's output; it was obeyed.
std::string obeyed(const Sandbox& box, const std::vector<std::string>& command) {
  Finished finished;
  const auto is_answered = [&] { return !is_to_be_given_again(finished = box.tune(command)); };
  CHECK(Sandbox::eventually(is_answered, std::chrono::seconds(60)));
  INFO(finished.err);
  CHECK(finished.code == 0);
  return finished.out;
}

void refused(const Sandbox& box, const std::vector<std::string>& command, const std::string& why) {
  Finished finished;
  const auto is_answered = [&] { return !is_to_be_given_again(finished = box.tune(command)); };
  CHECK(Sandbox::eventually(is_answered, std::chrono::seconds(60)));
  CHECK(finished.code == 2);
  CHECK_HAS(finished.err, why);
  CHECK(finished.out.empty());
}

TEST_CASE("a trial that is paused stays so through kill -9 and resume, until its user says") {
  Sandbox box;
  box.set("USER", "ada");
  box.write("sweep.yaml", changing_sweep(2));
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
    CHECK(obeyed(box, {"pause", "results/s", "0", "--reason", "the GPU is needed"}) ==
          "trial 0 saves after its step and stays PAUSED until tune unpause\n");
    run.signal(SIGKILL);
    run.wait();
  }
  CHECK(box.is_quiet());
  refused(box, {"unpause", "results/s", "0"},
          "no driver runs it; resume it first with: tune resume");
  Running resumed = box.start_tune({"resume", "results/s"});
  REQUIRE(Sandbox::eventually(
      [&] { return says(box, "the sweep waits for trials that a user has paused: 0"); }));
  const std::string why = obeyed(box, {"explain", "results/s", "0"});
  CHECK_HAS(why, "it has not ended: ada paused it after iteration ");
  CHECK_HAS(why, ": the GPU is needed; tune unpause lets it go on");
  const Value listed = parse_json(obeyed(box, {"ls", "results", "--json"}), "a line of ls");
  CHECK(listed.get<std::string>("state") == "running");
  CHECK(listed.get<int>("over") == 1);
  CHECK_FALSE(resumed.ends_within(std::chrono::milliseconds(300)));
  obeyed(box, {"unpause", "results/s", "0"});
  const Finished finished = resumed.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(finished.err, "Paused by users: ");
  check_complete(box, "results/s", 2, 8);
  CHECK_HAS(obeyed(box, {"replay", "results/s"}), "the journal leads to the same decisions");
  refused(box, {"pause", "results/s", "0"}, "no driver runs it, as it is finished: tune resume");
  check_nothing_left(box, "results/s");
}

TEST_CASE("trials are stopped, retried, added and noted, and num_samples grows") {
  Sandbox box;
  box.set("USER", "ada");
  box.write("sweep.yaml", changing_sweep(2));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  // Which keeps the sweep alive, however slow commands are.
  obeyed(box, {"pause", "results/s", "1"});
  const Finished stopped =
      box.tune({"stop", "results/s", "0", "99", "--reason", "too slow", "--json"});
  CHECK(stopped.code == 2);
  const std::vector<std::string> answers = lines_of(stopped.out);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0] == R"({"do":"stop","trial":"0","done":"trial 0 saves and ends"})");
  CHECK_HAS(answers[1], R"("trial":"99","error":"there is no trial '99': there are )");
  REQUIRE(Sandbox::eventually([&] { return says(box, "\"trial_ended\""); }));
  refused(box, {"stop", "results/s", "0"}, "trial 0 has ended already: TERMINATED");
  CHECK_HAS(obeyed(box, {"add", "results/s", "{lr: 0.25}"}),
            "has it: {\"lr\":0.25,\"step_ms\":250}");
  refused(box, {"add", "results/s", "{lrr: 0.25}"},
          "there is no 'lrr' in config (did you mean 'lr'?)");
  refused(box, {"add", "results/s", "[1, 2]"}, "it has to be a map");
  obeyed(box, {"change", "results/s", "--num-samples", "3"});
  refused(box, {"change", "results/s", "--num-samples", "0"}, "takes a number from 1");
  obeyed(box, {"note", "results/s", "0", "looks odd, <b>\n"});
  obeyed(box, {"retry", "results/s", "0"});
  obeyed(box, {"unpause", "results/s", "1"});
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", 4, 8);  // three samples and an added one
  const std::string why = obeyed(box, {"explain", "results/s", "0"});
  CHECK_HAS(why, "stop by ada: too slow");
  CHECK_HAS(why, "note by ada: looks odd, <b>");
  CHECK_HAS(obeyed(box, {"explain", "results/s", "2"}),
            "proposed: added by ada while the sweep ran");
  CHECK_HAS(obeyed(box, {"replay", "results/s"}), "the journal leads to the same decisions");
  CHECK_HAS(box.read("results/s/experiment.json"), "\"num_samples\": 3");
  check_nothing_left(box, "results/s");
}

TEST_CASE("a group is paused and goes on like others") {
  Sandbox box;
  box.write("group.yaml", changing_sweep(1, "resources_per_trial: {cpu: 2, ranks: 2}\n"));
  Running run = box.start_tune({"run", "group.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  obeyed(box, {"pause", "results/s", "0"});
  REQUIRE(Sandbox::eventually([&] { return says(box, "\"outcome\":\"paused\""); }));
  obeyed(box, {"unpause", "results/s", "0"});
  CHECK(run.wait().code == 0);
  check_complete(box, "results/s", 1, 8);
}

TEST_CASE(
    "every kind of trainable obeys orders while it runs, and each trial is whole at the end") {
  for (const TrainableKind& kind : trainable_kinds()) {
    CAPTURE(kind.name);
    Sandbox box;
    box.write("sweep.yaml", kind.yaml + "config: {step_ms: {choice: [" +
                                std::to_string(lasting(25)) +
                                "]}}\nnum_samples: 2\nmetric: count\nmode: max\n"
                                "seed: 5\nstop: {training_iteration: 20}\n" +
                                kind.if_it_saves("checkpoint: {frequency: 4}\n"));
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
    obeyed(box, {"pause", "results/s", "0"});
    CHECK(obeyed(box, {"stop", "results/s", "1"}) == "trial 1 saves and ends\n");
    REQUIRE(Sandbox::eventually([&] {
      return says(box, "\"outcome\":\"paused\"") && says(box, "\"outcome\":\"stopped\"");
    }));
    obeyed(box, {"note", "results/s", "0", "kept back"});  // which keeps the sweep alive
    obeyed(box, {"retry", "results/s", "1"});
    CHECK_HAS(obeyed(box, {"add", "results/s", "{step_ms: 1}"}), "has it: {\"step_ms\":1}");
    obeyed(box, {"change", "results/s", "--num-samples", "3"});
    obeyed(box, {"unpause", "results/s", "0"});
    const Finished finished = run.wait();
    INFO(finished.err);
    CHECK(finished.code == 0);
    check_complete(box, "results/s", 4, 20);
    for (const fs::path& trial : trial_folders(box, "results/s")) {
      const std::string file = fs::relative(trial / "result.json", box.path());
      int count = 0;
      for (const std::string& line : lines_of(box.read(file))) {
        CHECK(parse_json(line, file).get<int>("count") == ++count);
      }
    }
    CHECK_HAS(obeyed(box, {"replay", "results/s"}), "the journal leads to the same decisions");
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE("a command without restart is not paused, and stopped where it stands") {
  Sandbox box;
  box.write(
      "sweep.yaml",
      "command: [sh, -c, 'echo \"tune: {\\\"loss\\\": 1}\"; sleep 60']\nmetric: loss\nmode: min\n");
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  refused(box, {"pause", "results/s", "0"}, "is a command without restart in its sweep");
  obeyed(box, {"stop", "results/s", "0"});
  CHECK(run.wait().code == 0);
  CHECK(lines_of(box.read("results/s/results.csv")).size() == 2);
  CHECK(box.is_quiet());
}

TEST_CASE("a folder without an experiment takes no orders, and says so") {
  Sandbox box;
  refused(box, {"stop", ".", "0"}, "experiment.json");
  refused(box, {"ls", "nowhere"}, "listing the experiments of nowhere");
}

}  // namespace
}  // namespace tune
