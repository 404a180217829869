#include "core/command_spec.h"

#include <doctest/doctest.h>

#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

CommandSpec command(std::vector<std::string> words) {
  CommandSpec spec;
  spec.words = std::move(words);
  return spec;
}

TEST_CASE("a command is the same after a way through text") {
  CommandSettings settings;
  settings.command = command({"./train", "--x={control}", "ü \"quoted\"\n"});
  settings.name = "train";
  settings.grace_s = 2.5;
  settings.places = {{"command", "dir/s.yaml:3"}, {"report", "dir/s.yaml:4"}};
  const Value reports[] = {"auto", "fd", {{"stdout", "json"}}, {{"stdout", "x=(?P<x>.*)"}},
                           {{"file", "a/m.jsonl"}}};
  for (const Value& report : reports) {
    CAPTURE(report.dump());
    read_report(report, settings.command);
    settings.command.restart = CommandRestart::kFromScratch;
    settings.command.program = "t.py";
    const std::string text = to_text(settings);
    CHECK(text.find("{control}") == std::string::npos);  // an agent would replace it
    const CommandSettings read = settings_from_text(text);
    CHECK(read.command.words == settings.command.words);
    CHECK(report_value(read.command) == report);
    CHECK(read.command.restart == CommandRestart::kFromScratch);
    CHECK(read.command.program == "t.py");
    CHECK(read.name == "train");
    CHECK(read.grace_s == 2.5);
    CHECK(read.places == settings.places);
  }
  CHECK_HAS(refusal([] { settings_from_text("{}"); }), "command");
}

TEST_CASE("a report that is none of the five is refused") {
  CommandSpec spec;
  const Value wrong[] = {"json", 3, Value::make_map(), {{"stdin", "json"}}, {{"stdout", 3}},
                         {{"stdout", "json"}, {"file", "x"}}};
  for (const Value& report : wrong) {
    CAPTURE(report.dump());
    CHECK_HAS(refusal([&] { read_report(report, spec); }), "expected auto, fd, {stdout: json}");
  }
  for (const char* file : {"/tmp/m.jsonl", "../m.jsonl", "a/../../m", "..", ""}) {
    CAPTURE(file);
    CHECK_HAS(refusal([&] { read_report({{"file", file}}, spec); }), "within the trial's folder");
  }
}

TEST_CASE("a command is named after its script or program") {
  const struct {
    std::vector<std::string> words;
    const char* program;
    const char* name;
  } cases[] = {
      {{"./train", "--lr", "${lr}"}, "", "train"},
      {{"python3", "src/train-it.py"}, "", "train_it"},
      {{"/usr/bin/python3.11", "-u", "train.py"}, "", "train"},
      {{"${env}", "python", "${program}", "${args}"}, "a/b.py", "b"},
      {{"sh", "-c", "echo hi"}, "", "command"},
      {{"${lr}"}, "", "command"},
      {{"./.hidden"}, "", "_hidden"},
  };
  for (const auto& one : cases) {
    CommandSpec spec = command(one.words);
    spec.program = one.program;
    CHECK(command_name(spec) == one.name);
  }
}

}  // namespace
}  // namespace tune
