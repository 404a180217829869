#include "trainables/command/report_lines.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

ReportLines lines(const Value& report) {
  CommandSpec command;
  read_report(report, command);
  return ReportLines(command);
}

std::string output(const ReportLines& reader, std::string_view text) {
  const auto result = reader.of_output({text}, 3);
  return result ? result->dump() : "none";
}

TEST_CASE("auto reads lines that begin with tune:") {
  const ReportLines reader = lines("auto");
  CHECK(output(reader, R"(tune: {"loss": 0.5})") == R"({"loss":0.5})");
  CHECK(output(reader, R"(  tune:{"loss": 1}  )") == R"({"loss":1})");
  for (const char* other : {"loss=0.5", R"({"loss": 0.5})", "tune: warming up", "tune:", "",
                            "\xff\xfe garbage"}) {
    CHECK(output(reader, other) == "none");
  }
  CHECK_HAS(refusal([&] { output(reader, "tune: {\"loss\": "); }),
            "line 3 of standard output: reading a report");
  CHECK_HAS(refusal([&] { output(reader, "tune: {'loss': 1}"); }), R"("tune: {'loss': 1}")");
}

TEST_CASE("stdout json reads lines that are objects") {
  const ReportLines reader = lines({{"stdout", "json"}});
  CHECK(output(reader, R"({"loss": NaN})") == R"({"loss":null})");  // dumped so
  CHECK(std::isnan(reader.of_output({R"({"loss": NaN})"}, 1)->get<double>("loss")));
  CHECK(output(reader, "epoch 1") == "none");
  CHECK_HAS(refusal([&] { output(reader, "{'loss': 1}"); }), "line 3 of standard output");
}

TEST_CASE("a regular expression reads numbers and texts") {
  const ReportLines reader =
      lines({{"stdout", R"((?P<epoch>\d+): loss (?P<loss>[^ ,]+)(, (?P<note>.*))?)"}});
  CHECK(output(reader, "3: loss 1e-3") == R"({"epoch":3,"loss":0.001})");
  CHECK(output(reader, "3: loss +2.5, fine 1") == R"({"epoch":3,"loss":2.5,"note":"fine 1"})");
  CHECK(output(reader, "1: loss -inf") == R"({"epoch":1,"loss":"-inf"})");  // dumped so
  CHECK(std::isnan(reader.of_output({"1: loss nan"}, 1)->get<double>("loss")));
  CHECK(output(reader, "1: loss 12abc") == R"({"epoch":1,"loss":"12abc"})");
  CHECK(reader.of_output({"1: loss 1e999"}, 1)->get<double>("loss") ==
        std::numeric_limits<double>::infinity());
  CHECK(output(reader, "99999999999999999999: loss 1") == R"({"epoch":1e+20,"loss":1})");
  CHECK(output(reader, "nothing") == "none");
  CHECK(output(reader, "1: loss 1\r2: loss 2") == R"({"epoch":2,"loss":2})");  // a bar of progress
  CHECK_HAS(reader.how_to_report(), "no line of its standard output has '(?P<epoch>");
}

TEST_CASE("words on TUNE_FD") {
  const ReportLines reader = lines("fd");
  const auto word = [&](std::string_view text) { return reader.of_descriptor({text}, 7); };
  CHECK(std::get<Result>(word(R"({"x": 1})")).dump() == R"({"x":1})");
  CHECK_FALSE(std::get<Hello>(word("hello 1")).saves);
  CHECK(std::get<Hello>(word("hello 1 save")).saves);
  CHECK(std::holds_alternative<Saved>(word("saved")));
  CHECK(std::get<SaveFailed>(word("failed disk full")).why == "disk full");
  CHECK_HAS(refusal([&] { word("hello 2"); }), "this tune speaks version 1");
  CHECK_HAS(refusal([&] { word("hello 1 fly"); }), "expected 'hello 1' or 'hello 1 save'");
  for (const char* wrong : {"", "loss=1", "hello", "[1]", "tune: {}"}) {
    CAPTURE(wrong);
    CHECK_HAS(refusal([&] { word(wrong); }), "line 7 of TUNE_FD: neither a report");
  }
  CHECK(output(reader, R"(tune: {"x": 1})") == "none");
}

TEST_CASE("a report that is too long is refused, and shown in part") {
  const ReportLines reader = lines("fd");
  const std::string text = "{" + std::string(1000, 'a');
  const std::string error =
      refusal([&] { reader.of_descriptor({text, true}, 1); });
  CHECK_HAS(error, "a report has at most 1048576 bytes");
  CHECK(error.size() < 300);
}

TEST_CASE("lines of a file are reports, empty ones are none") {
  const ReportLines reader = lines({{"file", "m.jsonl"}});
  CHECK(reader.of_file({R"({"x": 1})"}, 1)->dump() == R"({"x":1})");
  CHECK_FALSE(reader.of_file({"  "}, 2));
  CHECK_HAS(refusal([&] { reader.of_file({"x"}, 3); }), "line 3 of m.jsonl");
}

}  // namespace
}  // namespace tune
