// The files of a trial, byte by byte.
#include "tune/results/file_logger.h"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/refusal.h"
#include "numbers.h"
#include "tune/results/csv.h"
#include "tune/results/result_lines.h"
#include "tune/story.h"

namespace tune {
namespace {

using testing::kInfinity;
using testing::kNan;

// `date` is told in local time.
struct InUtc {
  InUtc() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
} const in_utc;

std::string csv_cell(const std::string& csv, std::size_t row, const std::string& column) {
  std::string_view text = csv;
  std::vector<std::string> names;
  std::vector<std::string> cells;
  REQUIRE(next_csv_row(text, names));
  for (std::size_t i = 0; i < row; ++i) REQUIRE(next_csv_row(text, cells));
  REQUIRE(cells.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == column) return cells[i];
  }
  return "<no column " + column + ">";
}

TEST_CASE("a result is one line of JSON and one row of CSV with every added field") {
  Story story;
  Trial& trial = story.add();
  story.report(trial, {{"acc", 0.5}, {"loss", {{"train", 2.0}, {"test", 3}}}});
  story.report(trial, {{"acc", 0.75}, {"loss", {{"train", 1e-7}, {"test", 4}}}}, true);
  const std::string id = story.directory(trial).filename();
  const std::string tag = "0_lr=0.5,model/act=relu";

  CHECK(story.read(trial, "params.json") == R"({"lr":0.5,"model":{"act":"relu"},"batch":64})"
                                            "\n");
  CHECK(story.read(trial, "result.json") ==
        R"({"acc":0.5,"loss":{"train":2.0,"test":3},"training_iteration":1,"done":false,)"
        R"("trial_id":")" +
            id + R"(","experiment_tag":")" + tag +
            R"(",)"
            R"("time_this_iter_s":0.5,"time_total_s":0.5,"time_since_restore":0.5,)"
            R"("iterations_since_restore":1,"timestamp":1700000001,"date":"2023-11-14_22-13-21",)"
            R"("hostname":"node","node_ip":"10.0.0.3","pid":4711})"
            "\n"
            R"({"acc":0.75,"loss":{"train":1e-07,"test":4},"training_iteration":2,"done":true,)"
            R"("trial_id":")" +
            id + R"(","experiment_tag":")" + tag +
            R"(",)"
            R"("time_this_iter_s":0.5,"time_total_s":1.0,"time_since_restore":1.0,)"
            R"("iterations_since_restore":2,"timestamp":1700000002,"date":"2023-11-14_22-13-22",)"
            R"("hostname":"node","node_ip":"10.0.0.3","pid":4711})"
            "\n");
  CHECK(story.read(trial, "progress.csv") ==
        "training_iteration,done,trial_id,experiment_tag,time_this_iter_s,time_total_s,"
        "time_since_restore,iterations_since_restore,timestamp,date,hostname,node_ip,pid,"
        "acc,loss/train,loss/test\n"
        "1,false," +
            id + ",\"" + tag +
            "\",0.5,0.5,0.5,1,1700000001,2023-11-14_22-13-21,node,"
            "10.0.0.3,4711,0.5,2.0,3\n"
            "2,true," +
            id + ",\"" + tag +
            "\",0.5,1.0,1.0,2,1700000002,2023-11-14_22-13-22,node,"
            "10.0.0.3,4711,0.75,1e-07,4\n");
}

TEST_CASE("values in both files") {
  struct Case {
    Value value;
    const char* json;
    const char* csv;
  };
  const Case cases[] = {
      {0.1, "0.1", "0.1"},
      {1.0, "1.0", "1.0"},
      {-0.0, "-0.0", "-0.0"},
      {1e300, "1e+300", "1e+300"},
      {0.1f, "0.10000000149011612", "0.10000000149011612"},
      {kNan, "null", "nan"},
      {kInfinity, "\"inf\"", "inf"},
      {-kInfinity, "\"-inf\"", "-inf"},
      {nullptr, "null", "nan"},
      {true, "true", "true"},
      {std::numeric_limits<std::int64_t>::min(), "-9223372036854775808", "-9223372036854775808"},
      {"plain", "\"plain\"", "plain"},
      {"a,b", "\"a,b\"", "\"a,b\""},
      {"say \"hi\"", "\"say \\\"hi\\\"\"", "\"say \"\"hi\"\"\""},
      {"two\nlines\r\t", "\"two\\nlines\\r\\t\"", "\"two\nlines\r\t\""},
      {"back\\slash", "\"back\\\\slash\"", "back\\slash"},
      {"\x01", "\"\\u0001\"", "\x01"},
      {"käse €𝄞", "\"käse €𝄞\"", "käse €𝄞"},
      {"bad\xff\xc3", "\"bad\ufffd\ufffd\"", "bad\ufffd\ufffd"},
      {"\xed\xa0\x80", "\"\ufffd\ufffd\ufffd\"", "\ufffd\ufffd\ufffd"},  // a surrogate
      {list({1, 2.5, "x", kNan}), "[1,2.5,\"x\",null]", "\"[1,2.5,\"\"x\"\",null]\""},
      {list({Value{{"a", 1}}}), "[{\"a\":1}]", "\"[{\"\"a\"\":1}]\""},
      {Value::make_map(), "{}", "{}"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    ResultText text;
    text.add_members(pack(Result{{"v", c.value}}).bytes);
    CHECK(text.json() == std::string("\"v\":") + c.json);
    REQUIRE(text.cells() == 1);
    CHECK(text.path(0) == "v");
    CHECK(text.text(0) == c.csv);
  }
}

TEST_CASE("what was written reads back equal") {
  Story story;
  Trial& trial = story.add();
  const Result result{{"f", 0.1 + 0.2},
                      {"n", kNan},
                      {"p", kInfinity},
                      {"m", list({-kInfinity, 1, "a"})},
                      {"s", "käse, \"quoted\"\nline"},
                      {"i", std::numeric_limits<std::int64_t>::max()},
                      {"deep", {{"er", {{"x", 1.5}}}, {"b", false}}}};
  story.report(trial, result);
  story.flush();
  std::vector<Result> read;
  for_each_line(story.directory(trial) / "result.json", [&](std::string_view line, std::size_t) {
    read.push_back(result_from_line(line, "a test"));
  });
  REQUIRE(read.size() == 1);
  for (const auto& [path, value] : result.leaves()) {
    CAPTURE(path);
    CHECK(read[0].at(path) == *value);
  }
  const std::string csv = story.read(trial, "progress.csv");
  CHECK(csv_cell(csv, 1, "s") == "käse, \"quoted\"\nline");
  CHECK(csv_cell(csv, 1, "deep/er/x") == "1.5");
  CHECK(std::stod(csv_cell(csv, 1, "f")) == 0.1 + 0.2);
}

TEST_CASE("the user's own value of an added field is kept, but for done") {
  Story story;
  Trial& trial = story.add();
  story.report(trial, {{"training_iteration", 10}, {"done", false}, {"date", {{"day", 1}}}}, true);
  const std::string json = story.read(trial, "result.json");
  const Result result = result_from_line(split_lines(json).at(0), "a test");  // no key twice
  CHECK(result.get<int>("training_iteration") == 10);
  CHECK(result.get<int>("date/day") == 1);
  CHECK(result.get<bool>("done"));
  CHECK(csv_cell(story.read(trial, "progress.csv"), 1, "training_iteration") == "10");
}

TEST_CASE("timesteps_total stands among the fields when it is reported") {
  Story story;
  Trial& trial = story.add();
  story.report(trial, {{"acc", 1}});
  story.timesteps = 128;
  story.report(trial, {{"acc", 2}});
  story.timesteps = 128.5;
  story.report(trial, {{"acc", 3}});
  const std::string csv = story.read(trial, "progress.csv");
  CHECK(split_lines(csv).at(0).find("iterations_since_restore,timesteps_total,timestamp") !=
        std::string::npos);
  CHECK(csv_cell(csv, 1, "timesteps_total") == "");
  CHECK(csv_cell(csv, 2, "timesteps_total") == "128");
  CHECK(csv_cell(csv, 3, "timesteps_total") == "128.5");
}

TEST_CASE("a new key is a new column, whenever the turns end") {
  std::vector<std::string> csvs;
  for (const bool every_turn : {true, false}) {
    Story story;
    Trial& trial = story.add();
    const Result results[] = {{{"a", 1}},
                              {{"a", 2}, {"text", "x,\"y\"\nz"}},
                              {{"b", kNan}, {"a", 3}},
                              {{"b", 4.0}},
                              {{"none", nullptr}, {"c", {{"d", list({1, 2})}}}}};
    for (const Result& result : results) {
      story.report(trial, result);
      if (every_turn) story.flush();
    }
    const std::string csv = story.read(trial, "progress.csv");
    CHECK(split_lines(csv).at(0).ends_with(",pid,a,text,b,none,c/d"));
    CHECK(csv_cell(csv, 1, "a") == "1");
    CHECK(csv_cell(csv, 1, "text") == "");
    CHECK(csv_cell(csv, 2, "text") == "x,\"y\"\nz");
    CHECK(csv_cell(csv, 3, "a") == "3");
    CHECK(csv_cell(csv, 3, "b") == "nan");
    CHECK(csv_cell(csv, 4, "a") == "");
    CHECK(csv_cell(csv, 5, "c/d") == "[1,2]");
    CHECK(csv_cell(csv, 5, "none") == "nan");
    csvs.push_back(csv);
  }
  CHECK(csvs[0] == csvs[1]);
}

TEST_CASE("results that are void are cut from both files") {
  for (const std::uint64_t kept : {0, 1, 3, 9}) {
    CAPTURE(kept);
    Story story;
    Trial& trial = story.add();
    for (int i = 1; i <= 3; ++i) {
      story.report(trial, {{"i", i}});
      if (i == 2) story.flush();  // the cut also counts what is not yet written
    }
    story.report(trial, {{"late", 1}});
    story.cut(trial, kept);
    const std::size_t left = std::min<std::uint64_t>(kept, 4);
    CHECK(split_lines(story.read(trial, "result.json")).size() == left);
    CHECK(split_lines(story.read(trial, "progress.csv")).size() == (left == 0 ? 0 : left + 1));
    trial.last.reset();
    story.report(trial, {{"i", 7}});
    const std::string csv = story.read(trial, "progress.csv");
    CHECK(csv_cell(csv, left + 1, "i") == "7");
    // A column that only the cut results had is gone.
    CHECK(testing::has(split_lines(csv).at(0), "late") == (kept == 9));
    CHECK(split_lines(story.read(trial, "result.json")).at(left).starts_with("{\"i\":7,"));
  }
}

TEST_CASE("a trial that is paused and goes on appends to its files") {
  Story story;
  Trial& trial = story.add();
  story.report(trial, {{"a", 1}});
  story.flush();
  story.set_status(trial, TrialStatus::kPaused);
  story.flush();
  story.set_status(trial, TrialStatus::kRunning);
  story.report(trial, {{"b", 2}});
  story.report(trial, {{"a", 3}});
  CHECK(split_lines(story.read(trial, "result.json")).size() == 3);
  const std::string csv = story.read(trial, "progress.csv");
  CHECK(csv_cell(csv, 1, "a") == "1");
  CHECK(csv_cell(csv, 2, "b") == "2");
  CHECK(csv_cell(csv, 3, "a") == "3");
}

TEST_CASE("error.txt has every failure with its cause") {
  Story story;
  Trial& trial = story.add();
  story.fail(trial, "step: first", true);
  story.fail(trial, "exited with code 3", false);
  CHECK(story.read(trial, "error.txt") ==
        "--- attempt 1 failed at 2023-11-14_22-13-20: it is tried again ---\n"
        "rank 0: step: first\n"
        "its last lines on stderr:\nline 1\nline 2\n"
        "--- attempt 2 failed at 2023-11-14_22-13-20: the trial is in ERROR ---\n"
        "rank 0: exited with code 3\n"
        "its last lines on stderr:\nline 1\nline 2\n");
}

TEST_CASE("a result that its worker damaged still counts as a line") {
  Story story;
  Trial& trial = story.add();
  story.report_packed(trial, {"\x81\xa1"});
  story.report(trial, {{"a", 1}});
  const auto lines = split_lines(story.read(trial, "result.json"));
  REQUIRE(lines.size() == 2);
  CHECK(result_from_line(lines[0], "a test").get<int>("training_iteration") == 1);
  CHECK(result_from_line(lines[1], "a test").get<int>("a") == 1);
}

// The descriptors of this process with the files that they have open.
std::map<std::string, std::filesystem::path> open_files() {
  std::map<std::string, std::filesystem::path> open;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code is_that_of_the_loop;
    open[file.path().filename()] = std::filesystem::read_symlink(file.path(), is_that_of_the_loop);
  }
  return open;
}

// Trials that report in turn must not take each other's descriptors: were those that were written
// longest ago closed for the next, each trial would find its files closed.
TEST_CASE("more trials report than files may be open: those that are open stay so") {
  Story story;
  constexpr std::size_t kTrials = 1000;
  for (std::size_t i = 0; i < kTrials; ++i) story.add();
  for (int step = 1; step <= 2; ++step) {
    for (Trial& trial : story.trials()) story.report(trial, {{"step", step}});
    story.flush();
  }
  const auto open = open_files();
  CHECK(open.size() > 500);  // two of each trial that keeps them
  CHECK(open.size() < 600);
  std::size_t reported = 0;
  for (Trial& trial : story.trials()) {
    story.report(trial, {{"step", 3}});
    if (++reported % (kTrials / 4) != 0) continue;
    story.flush();
    CHECK(open_files() == open);
  }
  for (Trial& trial : story.trials()) {
    CHECK(split_lines(story.read(trial, "result.json")).size() == 3);
    CHECK(split_lines(story.read(trial, "progress.csv")).size() == 4);
  }
}

TEST_CASE("a file that cannot be written is an error that names it") {
  Story story;
  Trial& trial = story.add();
  story.flush();
  std::filesystem::create_directory(story.directory(trial) / "result.json");
  story.report(trial, {{"a", 1}});
  CHECK_HAS(testing::refusal([&] { story.flush(); }, ErrorCode::kIo),
            "result.json: Is a directory");
}

TEST_CASE("a full disk is an error with path, bytes and remedy; what was written stays") {
  Story story;
  Trial& trial = story.add();
  story.report(trial, {{"a", 1}});
  const pid_t child = fork();
  if (child == 0) {  // it writes, and no file may grow beyond 1 KiB there
    story.flush();
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1024, 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      for (int i = 0; i < 10; ++i) {
        story.report(trial, {{"a", i}});
        story.flush();
      }
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool told = error.code() == ErrorCode::kIo && text.starts_with("writing ") &&
                        testing::has(text, " bytes to ") &&
                        testing::has(text, "result.json: File too large: ");
      _exit(told ? 0 : 1);
    }
    _exit(2);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  const auto lines = split_lines(testing::read_text(story.directory(trial) / "result.json"));
  REQUIRE(lines.size() >= 2);
  CHECK(result_from_line(lines[1], "a test").get<int>("a") == 0);
}

TEST_CASE("lines of a file are found from both ends") {
  testing::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "lines";
  CHECK_FALSE(last_line(file));
  CHECK(offset_after_lines(file, 3) == 0);
  const std::string wide(100'000, 'x');  // longer than what is read at once
  struct Case {
    std::string text;
    std::size_t lines;
    std::optional<std::string> last;
  };
  const Case cases[] = {{"", 0, std::nullopt}, {"half", 0, std::nullopt},
                        {"a\n", 1, "a"},       {"a\nb\nhalf", 2, "b"},
                        {"\n", 1, ""},         {wide + "\n" + wide + "\n", 2, wide},
                        {"a\n" + wide, 1, "a"}};
  for (const Case& c : cases) {
    CAPTURE(c.text.size());
    AppendFile(file, true).write(c.text);
    CHECK(last_line(file) == c.last);
    std::size_t seen = 0;
    for_each_line(file, [&](std::string_view, std::size_t number) { CHECK(number == ++seen); });
    CHECK(seen == c.lines);
    CHECK(offset_after_lines(file, 1000) == (c.lines == 0 ? 0 : c.text.rfind('\n') + 1));
    CHECK(offset_after_lines(file, 1) == (c.lines == 0 ? 0 : c.text.find('\n') + 1));
  }
}

}  // namespace
}  // namespace tune
