// Sweeps whose trials are programs.
#include "tune/spec/command_options.h"

#include <doctest/doctest.h>

#include <fstream>

#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "tune/spec/yaml_spec.h"

namespace tune {
namespace {

using testing::refusal;

class CommandSweep {
 public:
  explicit CommandSweep(const std::string& text) {
    std::ofstream(folder_.path() / "s.yaml", std::ios::binary) << text;
  }
  ExperimentSpec read(const std::vector<std::string>& sets = {}) const {
    SweepOptions options;
    for (const std::string& set : sets) parse_set(set, options.overrides, options.complaints);
    return spec_from_yaml_file(folder_.path() / "s.yaml", std::move(options));
  }
  // The error's text, the folder left out.
  std::string error(const std::vector<std::string>& sets = {}) const {
    std::string text = refusal([&] { read(sets); });
    const std::string prefix = folder_.path().string() + "/";
    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

 private:
  testing::TemporaryFolder folder_;
};

const std::string kConfig = "config: {lr: {uniform: [0, 1]}, model: {layers: 2}}\n";

TEST_CASE("a command needs neither plugin, trainable nor a stop rule") {
  const ExperimentSpec spec =
      CommandSweep("command: [sh, scripts/train.sh, 010, 1e-3, -x, \"${lr}\"]\n" + kConfig).read();
  CHECK(spec.command.words ==
        std::vector<std::string>{"sh", "scripts/train.sh", "010", "1e-3", "-x", "${lr}"});
  CHECK(spec.trainable == "train");
  CHECK(spec.plugin.empty());
  CHECK(spec.command.report == ReportSource::kAuto);
  CHECK(spec.places.at("command").ends_with("s.yaml:1"));
  CHECK(spec.places.at("report").ends_with("s.yaml:1"));  // a default is the command's
}

TEST_CASE("a program alone is run as W&B's agent runs it") {
  const ExperimentSpec spec = CommandSweep("program: train.py\n" + kConfig).read();
  CHECK(spec.command.words ==
        std::vector<std::string>{"${env}", "${interpreter}", "${program}", "${args}"});
  CHECK(spec.command.program == "train.py");
  CHECK(spec.trainable == "train");
}

TEST_CASE("a stored experiment keeps its command") {
  const ExperimentSpec spec = CommandSweep("command: [sh, -c, \"x ${lr}\"]\nreport: {file: m.jsonl}\n"
                                    "restart: from_scratch\n" +
                                    kConfig)
                                  .read();
  const ExperimentSpec again = spec_from_value(to_value(spec));
  CHECK(to_value(again.command) == to_value(spec.command));
  CHECK(again.command.restart == CommandRestart::kFromScratch);
  const ExperimentSpec none = spec_from_value([&] {
    Value value = to_value(spec);
    value.erase("command_trial");
    return value;
  }());
  CHECK_FALSE(none.command.is_given());
}

TEST_CASE("a command's keys can be set from the command line") {
  const ExperimentSpec spec = CommandSweep("command: [sh, -c, x]\n" + kConfig)
                                  .read({"report={stdout: json}", "command=[true, 007]"});
  CHECK(spec.command.words == std::vector<std::string>{"true", "007"});
  CHECK(spec.command.report == ReportSource::kOutputJson);
}

TEST_CASE("every mistake of a command names its line and key") {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"command: ./train --lr ${lr}\n", "s.yaml:1: command: expected a list of words"},
      {"command: []\n", "s.yaml:1: command: expected a list of words"},
      {"command: [sh, [x]]\n", "command/1: expected a word, found a list"},
      {"command: [sh, -c, \"${lrr}\"]\n",
       "command/2: ${lrr} is neither a parameter of config nor known otherwise (did you mean 'lr'?)"},
      {"command:\n  - sh\n  - \"${program}\"\n", "s.yaml:3: command/1: ${program} needs the key"},
      {"command: [nowhere-to-be-found]\n",
       "s.yaml:1: command/0: there is no program 'nowhere-to-be-found' in PATH"},
      {"command: [./nowhere]\n", "command/0: there is no program ./nowhere (the working directory"},
      {"command: [/etc/passwd]\n", "command/0: /etc/passwd cannot be executed"},
      {"command: [\"${env}\", nowhere-to-be-found, x]\n", "command/1: there is no program"},
      {"command: [sh]\nreport: json\n", "s.yaml:2: report: expected auto, fd, {stdout: json}"},
      {"command: [sh]\nreport: {stdout: 'loss=(.*)'}\n", "s.yaml:2: report/stdout: 'loss=(.*)' names"},
      {"command: [sh]\nreport: {stdout: '(?P<x>'}\n", "report/stdout: '(?P<x>' is not a regular"},
      {"command: [sh]\nreport: {file: ../x}\n", "s.yaml:2: report: '../x' is not a path within"},
      {"command: [sh]\nrestart: from_scrach\n",
       "s.yaml:2: restart: expected from_scratch or from_checkpoint, found the text 'from_scrach' "
       "(did you mean 'from_scratch'?)"},
      {"command: [sh]\nrestart: from_checkpoint\nreport: {stdout: json}\n",
       "s.yaml:2: restart: from_checkpoint needs TUNE_FD"},
      {"command: [sh]\nplugin: x.so\n", "s.yaml:2: plugin: is given beside command"},
      {"command: [sh]\ntrainable: X\n", "s.yaml:2: trainable: is given beside command"},
      {"plugin: x.so\nreport: fd\n", "s.yaml:2: report: belongs to a command, and none is given"},
      {"metric: x\n", "or the program to run, as command: [./train, ...]"},
      {"command: [sh]\ncheckpoint: {frequency: 2}\n",
       "s.yaml:2: checkpoint/frequency: is 2, but the program is not known to save"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.text);
    CHECK_HAS(CommandSweep(one.text + kConfig).error(), one.error);
  }
}

TEST_CASE("a placeholder that only some options have is refused with one that lacks it") {
  const auto sweep = [](const std::string& word, const std::string& choice) {
    const std::string config = "config: {lr: 1, o: {choice: " + choice + "}}\n";
    return CommandSweep("command: [sh, -c, \"" + word + "\"]\n" + config);
  };
  const std::string some = "[{k: a, m: {uniform: [0, 1]}}, {k: b}]";
  CHECK_HAS(
      sweep("x ${o/m}", some).error(),
      "s.yaml:1: command/2: ${o/m} is not in every configuration: the option {\"k\":\"b\"} of "
      "'o' lacks it; give it to each option, or let the program read ${args}");
  CHECK_HAS(sweep("${o/m}", "[{m: {uniform: [0, 1]}}, none]").error(),
            "the option \"none\" of 'o' lacks it");
  CHECK_HAS(sweep("${o/c/x}", "[{c: {choice: [{x: {randint: [0, 3]}}, {y: 1}]}}]").error(),
            "the option {\"y\":1} of 'o/c' lacks it");
  for (const char* word : {"${o}", "${o/k}", "${lr}", "${args}", "$${o/m}"}) {
    CAPTURE(word);
    CHECK(sweep(word, some).read().command.is_given());
  }
  CHECK(sweep("${o/m}", "[{m: {uniform: [0, 1]}}, {m: 3}]").read().command.is_given());
}

TEST_CASE("parameters with one variable are told of") {
  const auto remarks = [](const std::string& head, const std::string& config) {
    return remarks_on(CommandSweep(head + "config: " + config + "\n").read());
  };
  const std::string command = "command: [sh, -c, x]\n";
  const auto told = remarks(command, "{a_b: {uniform: [0, 1]}, a: {b: 2}, \"a b\": 4, c: 5}");
  REQUIRE(told.size() == 1);
  CHECK_HAS(told[0],
            "s.yaml:1: command: the variable TUNE_PARAM_a_b stands for 'a b' and 'a/b' and 'a_b', "
            "and holds one of them: a program that reads it needs keys of other names");
  CHECK(remarks(command, "{a-b: 1, a: {choice: [{b: 1}, {b: 2}]}}").size() == 1);
  CHECK(remarks(command, "{a_b: 1, ab: 2, a: {c: 3}}").empty());
  CHECK(remarks(command, "{o: {choice: [{m: {uniform: [0, 1]}}, {m: 3}]}}").empty());
}

TEST_CASE("a scheduler that pauses trials wants a program that can begin again") {
  const std::string head = "command: [sh, -c, x]\nmetric: loss\n" + kConfig;
  const std::string promotion = "scheduler: {asha: {type: promote, max_t: 9}}\n";
  const std::string pbt =
      "scheduler: {pbt: {perturbation_interval: 2, hyperparam_mutations: {lr: {uniform: [0, 1]}}}}\n"
      "num_samples: 4\nstop: {training_iteration: 8}\n";
  CHECK_HAS(CommandSweep(head + promotion).error(), "s.yaml:4: scheduler: it pauses trials");
  CHECK_HAS(CommandSweep(head + promotion).error(), "restart: from_scratch");
  CHECK(CommandSweep(head + promotion + "restart: from_scratch\n").read().command.is_given());
  CHECK(CommandSweep(head + promotion + "restart: from_checkpoint\n").read().command.is_given());
  CHECK_HAS(CommandSweep(head + pbt).error(), "scheduler: it lets trials go on from the checkpoints");
  CHECK_HAS(CommandSweep(head + pbt + "restart: from_scratch\n").error(),
            "scheduler: it lets trials go on from the checkpoints");
  CHECK(CommandSweep(head + pbt + "restart: from_checkpoint\n").read().command.is_given());
}

}  // namespace
}  // namespace tune
