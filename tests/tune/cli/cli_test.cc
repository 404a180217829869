#include "tune/cli/cli.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/refusal.h"
#include "tune/cli/cli_commands.h"
#include "tune/cli/shell.h"
#include "tune/results/recorded_folder.h"
#include "tune/spec/experiment_spec.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

const char* const kSweep =
    "plugin: x.so\ntrainable: T\nmetric: loss\nmode: min\nseed: 3\nnum_samples: 2\n"
    "config: {lr: {loguniform: [1e-3, 1]}, depth: {grid_search: [1, 2]}}\n"
    "stop: {training_iteration: 3}\n";

TEST_CASE("--version and --help are data and end with 0") {
  const Shell shell;
  const Ended version = shell.tune({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("tune "));
  CHECK(version.err.empty());
  CHECK_HAS(shell.tune({"--help"}).out, "tune run sweep.yaml");
  for (const char* command : {"run", "validate", "simulate", "status", "results", "best", "resume",
                              "explain", "importance", "replay", "logs", "launch", "view"}) {
    CAPTURE(command);
    const Ended help = shell.tune({command, "--help"});
    CHECK(help.code == 0);
    CHECK_HAS(help.out, "Example:");
    CHECK_HAS(help.out, std::string("  tune ") + command);
    CHECK(help.err.empty());
  }
}

TEST_CASE("wrong arguments end with 2 and one error on stderr") {
  const Shell shell;
  const std::vector<std::vector<const char*>> cases = {
      {},
      {"rnu", "sweep.yaml"},
      {"run"},
      {"run", "a.yaml", "b.yaml"},
      {"run", "a.yaml", "--nmae", "x"},
      {"validate", "a.yaml", "--configs", "x"},
      {"results"},
      {"results", ".", "--csv", "-", "--json"},
      {"best", ".", "--json", "--checkpoint"},
      {"best", ".", "--scope", "first"},
      {"logs", "."},
      {"simulate"},
      {"simulate", "a.yaml", "--tasks", "x", "--from", "y"},
      {"simulate", "a.yaml", "--tasks", "x", "--workers", "0"},
      {"simulate", "a.yaml", "--tasks", "x", "--start-cost", "-1"},
      {"view", ".", "--port", "x"},
      {"view", ".", "--port", "65536"},
      {"launch"},
      {"launch", "--nproc", "2", "true"},
      {"launch", "--nnodes", "x", "true"},
  };
  for (const auto& arguments : cases) {
    const Ended ended = shell.tune(arguments);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err.starts_with("error: "));
    CHECK_HAS(ended.err, "--help");
  }
}

TEST_CASE("a sweep with mistakes ends run and validate with 2 before anything is written") {
  const Shell shell;
  shell.write("s.yaml", "plugin: x.so\ntrainable: T\nnum_sampels: 3\nseed: x\n");
  for (const char* command : {"run", "validate"}) {
    const Ended ended = shell.tune({command, "s.yaml"});
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err.starts_with("error: s.yaml"));
    CHECK_HAS(ended.err, "s.yaml:3: num_sampels: unknown key");
    CHECK_HAS(ended.err, "s.yaml:4: seed: expected");
    CHECK_HAS(ended.err, "plugin: there is no file");
    CHECK_FALSE(fs::exists(shell.path() / "results"));
  }
}

TEST_CASE("shorthands of run are checked like --set and named in errors") {
  const Shell shell;
  shell.write("s.yaml", kSweep);
  shell.write("x.so", "");
  const Ended ended = shell.tune({"run", "s.yaml", "--seed", "x", "--num-samples", "0", "--name",
                                  "a/b", "--store", "host", "--cpus", "-1", "--set", "nothing"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "--seed x: seed: expected a whole number");
  CHECK_HAS(ended.err, "--num-samples 0: num_samples: 0 is out of range");
  CHECK_HAS(ended.err, "--name a/b: name: the name 'a/b' holds a '/'");
  CHECK_HAS(ended.err, "--store host: store: this is not an address");
  CHECK_HAS(ended.err, "--cpus -1: cpus: -1 CPUs is out of range");
  CHECK_HAS(ended.err, "--set nothing: write PATH=VALUE");
}

TEST_CASE("a plugin that cannot be loaded is a mistake that validate finds") {
  const Shell shell;
  shell.write("s.yaml", kSweep);
  shell.write("x.so", "not a library");
  const Ended ended = shell.tune({"validate", "s.yaml"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "s.yaml:1: plugin: ");
}

TEST_CASE("commands that read an experiment refuse a folder without one") {
  const Shell shell;
  fs::create_directories(shell.path() / "empty");
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{"status", "empty"},
                                             {"results", "empty"},
                                             {"best", "empty"},
                                             {"resume", "empty"},
                                             {"logs", "empty", "1"},
                                             {"explain", "empty", "1"},
                                             {"importance", "empty"},
                                             {"replay", "empty"},
                                             {"best", "nowhere"}}) {
    const Ended ended = shell.tune(arguments);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err.starts_with("error: "));
    CHECK_HAS(ended.err, arguments[1]);
  }
}

TEST_CASE("logs finds a trial by id, number, end of id or name in the table") {
  const Shell shell;
  shell.write("e/experiment.json", "{}");
  for (const char* id : {"2f1e0_00001", "2f1e0_00011", "2f1e0_00003"}) {
    shell.write(std::string("e/") + id + "/stdout", std::string("I am ") + id + "\n");
  }
  fs::create_directories(shell.path() / "e/2f1e0_00004");
  shell.write("e/not_a_trial/stdout", "");
  const fs::path e = shell.path() / "e";
  for (const auto& [trial, id] :
       std::vector<std::pair<std::string, std::string>>{{"2f1e0_00001", "2f1e0_00001"},
                                                        {"1", "2f1e0_00001"},
                                                        {"00011", "2f1e0_00011"},
                                                        {"11", "2f1e0_00011"},
                                                        {"_00003", "2f1e0_00003"},
                                                        {"Mnist_2f1e0_00003", "2f1e0_00003"}}) {
    CAPTURE(trial);
    CHECK(find_trial(e, trial) == e / id);
  }
  CHECK_THROWS_WITH_AS(find_trial("e", "2"),
                       "e holds no experiment: name its folder, as in results/latest", Error);
  for (const char* wrong : {"2", "_00002", "x", "", "not_a_trial", "99999999999999999999999"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(find_trial(e, wrong), Error);
  }
  const Ended ended = shell.tune({"logs", "e", "3"});
  CHECK(ended.code == 0);
  CHECK(ended.out == "I am 2f1e0_00003\n");
  CHECK(ended.err.empty());
  // Nobody runs it: -f prints what there is and ends.
  CHECK(shell.tune({"logs", "e", "11", "-f"}).out == "I am 2f1e0_00011\n");
  const Ended silent = shell.tune({"logs", "e", "4"});
  CHECK(silent.code == 0);
  CHECK(silent.out.empty());
  CHECK_HAS(silent.err, "nothing yet");
  const Ended none = shell.tune({"logs", "e", "7"});
  CHECK(none.code == 2);
  CHECK_HAS(none.err, "there are 4: 2f1e0_00001 to 2f1e0_00011");
}

TEST_CASE("logs shows the errors and the other ranks of a trial") {
  const Shell shell;
  shell.write("e/experiment.json", "{}");
  for (const char* name : {"stdout", "stderr", "stdout.1", "stderr.1"}) {
    shell.write(std::string("e/2f1e0_00001/") + name, std::string("this is ") + name + "\n");
  }
  shell.write("e/2f1e0_00002/stdout", "alone\n");
  CHECK(shell.tune({"logs", "e", "1", "--stderr"}).out == "this is stderr\n");
  CHECK(shell.tune({"logs", "e", "1", "--rank", "1"}).out == "this is stdout.1\n");
  CHECK(shell.tune({"logs", "e", "1", "--rank", "1", "--stderr", "-f"}).out ==
        "this is stderr.1\n");
  const Ended none = shell.tune({"logs", "e", "1", "--rank", "2"});
  CHECK(none.code == 2);
  CHECK_HAS(none.err, "--rank 2: e/2f1e0_00001 has ranks 0 to 1");
  CHECK_HAS(shell.tune({"logs", "e", "2", "--rank", "1"}).err, "has rank 0 only");
  CHECK(shell.tune({"logs", "e", "1", "--rank", "x"}).code == 2);
}

TEST_CASE("a wrong command is named, with the nearest one") {
  const Shell shell;
  const Ended ended = shell.tune({"runn", "x"});
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "there is no command 'runn' (did you mean 'run'?); commands: run, ");
  CHECK_HAS(shell.tune({"--nonsense"}).err, "there is no option --nonsense; see tune --help");
  CHECK_HAS(shell.tune({}).err, "which command? run, validate, ");
}

// An experiment that is over, as its driver left it: two trials, of which the second failed.
void write_finished(const Shell& shell) {
  RunOptions options;
  options.name = "e";
  options.config = {{"model", {{"lr", uniform(0, 1)}}}};
  options.metric = "loss";
  options.mode = Mode::kMin;
  options.seed = 3;
  options.num_samples = 2;
  options.stop = {{"training_iteration", 2}};
  std::vector<Complaint> complaints;
  const ExperimentSpec spec = make_spec(options, "T", false, complaints);
  REQUIRE(complaints.empty());
  shell.write("e/experiment.json", to_json(to_value(spec)));
  shell.write("e/run.json",
              R"({"state":"finished","driver_pid":1,"hostname":"h","store":"","prefix":"p"})");
  shell.write("e/2f1e0_00000/params.json", R"({"model":{"lr":0.5}})");
  shell.write("e/2f1e0_00000/result.json",
              "{\"loss\":0.9,\"training_iteration\":1,\"done\":false}\n"
              "{\"loss\":0.25,\"training_iteration\":2,\"done\":true}\n");
  shell.write("e/2f1e0_00000/checkpoint_000002/state", "");
  shell.write("e/2f1e0_00001/params.json", R"({"model":{"lr":0.75}})");
  shell.write("e/2f1e0_00001/error.txt", "it broke\n");
  shell.write("e/results.csv",
              "trial_id,status,training_iteration,done,loss,config/model/lr\n"
              "2f1e0_00000,TERMINATED,2,true,0.25,0.5\n2f1e0_00001,ERROR,,,,0.75\n");
}

TEST_CASE("results and best read a finished experiment in every form") {
  const Shell shell;
  write_finished(shell);
  const Ended table = shell.tune({"results", "e"});
  INFO(table.err);
  CHECK(table.code == 0);
  CHECK(table.out ==
        "trial_id     status      training_iteration  loss  config/model/lr\n"
        "2f1e0_00000  TERMINATED  2                   0.25  0.5\n"
        "2f1e0_00001  ERROR                                 0.75\n");
  const Ended json = shell.tune({"results", "e", "--json"});
  const Value first = parse_json(json.out.substr(0, json.out.find('\n')), "the first line");
  CHECK(first.get<std::string>("trial_id") == "2f1e0_00000");
  CHECK(first.get<double>("config/model/lr") == 0.5);
  CHECK(first.get<double>("result/loss") == 0.25);
  CHECK_HAS(shell.tune({"results", "e", "--csv", "-"}).out, "2f1e0_00001,ERROR");
  CHECK(shell.tune({"results", "e", "--csv", "out.csv"}).out.empty());
  CHECK_HAS(testing::read_text(shell.path() / "out.csv"), "config/model/lr");

  const Ended nowhere = shell.tune({"results", "e", "--csv", "none/x.csv"});
  CHECK(nowhere.code == 2);
  CHECK_HAS(nowhere.err, "--csv none/x.csv: there is no folder ");
  CHECK_FALSE(testing::has(nowhere.err, ".tmp-"));
  CHECK_HAS(shell.tune({"results", "e", "--csv", "e"}).err, "--csv e: it is a folder");

  CHECK_HAS(shell.tune({"best", "e"}).out, "config: {\"model\":{\"lr\":0.5}}\n");
  const Value best = parse_json(shell.tune({"best", "e", "--json"}).out, "best");
  CHECK(best.get<std::string>("status") == "TERMINATED");
  CHECK(best.get<double>("config/model/lr") == 0.5);
  CHECK(shell.tune({"best", "e", "--checkpoint"}).out == "e/2f1e0_00000/checkpoint_000002\n");
  const auto loss = [&](std::vector<const char*> options) {
    options.insert(options.begin(), {"best", "e", "--json"});
    return parse_json(shell.tune(options).out, "best").get<double>("result/loss");
  };
  CHECK(loss({}) == 0.25);
  CHECK(loss({"--mode", "max"}) == 0.25);
  CHECK(loss({"--mode", "max", "--scope", "all"}) == 0.9);
  CHECK(loss({"--metric", "training_iteration", "--mode", "min", "--scope", "all"}) == 0.9);
  const Ended unknown = shell.tune({"best", "e", "--metric", "los"});
  CHECK(unknown.code == 2);
  CHECK_HAS(unknown.err, "los");
}

TEST_CASE("a metric that the last result lacks is shown as it was last reported") {
  const Shell shell;
  write_finished(shell);
  shell.write("e/2f1e0_00000/result.json",
              "{\"loss\":0.9,\"training_iteration\":1,\"done\":false}\n"
              "{\"loss\":0.25,\"training_iteration\":2,\"done\":false}\n"
              "{\"speed\":3,\"training_iteration\":3,\"done\":true}\n");
  CHECK_HAS(shell.tune({"best", "e"}).out, "\nloss, as it was last reported: 0.25\n");
  CHECK_HAS(shell.tune({"results", "e"}).out, "2f1e0_00000  TERMINATED  3                   0.25");
  CHECK_HAS(shell.tune({"ls", "."}).out, "loss=0.25");
  CHECK_HAS(shell.tune({"view", "e", "--terminal"}).out, "loss: curves of the best 1 trials");
  shell.write("e/2f1e0_00000/params.json", R"({"model":{"lr":"two\nlines"}})");
  CHECK_HAS(shell.tune({"results", "e"}).out, "  two lines\n");
}

TEST_CASE("ls counts trials against those that there will be") {
  const Shell shell;
  RecordedFolder killed(shell, "killed", {{"x", uniform(0, 1)}, {"y", grid_search({1, 2})}},
                        basic_variant(), 20);
  killed.add({{"x", 0.5}, {"y", 1}}, {0.9});
  CHECK_HAS(shell.tune({"ls", "killed"}).out, "  1/40  ");
  const Value line = parse_json(shell.tune({"ls", "killed", "--json"}).out, "a line");
  CHECK(line.get<int>("trials") == 1);
  CHECK(line.get<int>("total") == 40);
  RecordedFolder endless(shell, "endless", {{"x", uniform(0, 1)}}, basic_variant(), -1,
                         [](RunOptions& options) { options.time_budget_s = 60; });
  endless.add({{"x", 0.5}}, {0.9});
  CHECK_HAS(shell.tune({"ls", "endless"}).out, "  1/1  ");
  CHECK(parse_json(shell.tune({"ls", "endless", "--json"}).out, "a line").at("total").is_null());
}

TEST_CASE("resuming a finished experiment starts nothing and still gives the best configuration") {
  const Shell shell;
  write_finished(shell);
  const Ended ended = shell.tune({"resume", "e"});
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(ended.out == "{\"model\":{\"lr\":0.5}}\n");
  CHECK_HAS(ended.err, "is finished, nothing to resume: --errored tries its failed trials again");
}

}  // namespace
}  // namespace tune
