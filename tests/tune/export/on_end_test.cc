#include "tune/export/on_end.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/platform/process.h"
#include "core/refusal.h"
#include "platform/one_answer.h"
#include "skip.h"
#include "view/folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

EndedRun example() {
  EndedRun run{
      .name = "s", .status = "finished", .directory = "/r/s", .trials = 2, .metric = "loss"};
  run.best = {.trial = "2f1e0_00001", .value = 0.5, .config = Config{{"lr", 0.1}}};
  return run;
}

struct EndTold {
  std::vector<std::string> notices;
  void end(const OnEnd& wanted) {
    do_on_end(wanted, example(), [this](const std::string& text) { notices.push_back(text); });
  }
};

TEST_CASE("a program is told by its environment, and its arguments are read by no shell") {
  const testing::TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  EndTold told;
  told.end({.command = {"sh", "-c",
                        "printf '%s|' \"$TUNE_NAME\" \"$TUNE_STATUS\" \"$TUNE_BEST_VALUE\" "
                        "\"$TUNE_BEST_CONFIG\" \"$2\" > \"$1\"",
                        "sh", out.string(), "$(echo no); `no`"}});
  CHECK(told.notices.empty());
  CHECK(testing::read_text(out) == "s|finished|0.5|{\"lr\":0.1}|$(echo no); `no`|");
}

TEST_CASE("a program that fails, or is not there, is a notice") {
  EndTold told;
  told.end({.command = {"false"}});
  told.end({.command = {"/no/such/program"}});
  REQUIRE(told.notices.size() == 2);
  CHECK_HAS(told.notices[0], "on_end: false: exited with code 1");
  CHECK_HAS(told.notices[1], "on_end: /no/such/program: ");
}

TEST_CASE("a webhook gets the run as JSON") {
  if (!testing::has_libcurl()) return testing::skip("there is no libcurl here");
  testing::OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EndTold told;
  told.end({.webhook = server.url() + "/hook"});
  CHECK(told.notices.empty());
  const std::string& request = server.request();
  CHECK_HAS(request, "POST /hook");
  const Value body = parse_json(request.substr(request.find("\r\n\r\n") + 4), "the body");
  CHECK(body.get<std::string>("text") == "s is finished, best loss 0.5");
  CHECK(body.get<double>("best/config/lr") == 0.1);
}

TEST_CASE("a webhook that refuses is a notice without what is secret in its address") {
  if (!testing::has_libcurl()) return testing::skip("there is no libcurl here");
  testing::OneAnswer server("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  EndTold told;
  told.end({.webhook = server.url() + "/secret"});
  REQUIRE(told.notices.size() == 1);
  CHECK(told.notices[0] == "on_end: " + server.url() + ": the answer has the status 403");
}

// All that is written to a terminal, or to a pipe, in stderr's place.
std::string on_stderr(bool is_terminal, const std::function<void()>& work) {
  int ends[2] = {-1, -1};
  if (is_terminal) {
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(ends[0] >= 0);
    REQUIRE(grantpt(ends[0]) == 0);
    REQUIRE(unlockpt(ends[0]) == 0);
    ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
  } else {
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  }
  const FileDescriptor reader(ends[0]), writer(ends[1]), kept(fcntl(2, F_DUPFD_CLOEXEC, 3));
  dup2(writer.get(), STDERR_FILENO);
  work();
  dup2(kept.get(), STDERR_FILENO);
  std::string got(4096, '\0');
  pollfd waits{reader.get(), POLLIN, 0};
  const ssize_t count = poll(&waits, 1, 0) > 0 ? read(reader.get(), got.data(), got.size()) : 0;
  return got.substr(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
}

TEST_CASE("a terminal gets a note (OSC 9) and the bell, a pipe and a dumb terminal nothing") {
  EndedRun run = example();
  run.name = "s\x1b]0;odd\a";  // a name must not steer the terminal
  const auto end = [&] { do_on_end({.terminal = true}, run, [](const std::string&) {}); };
  setenv("TERM", "xterm", 1);
  CHECK(on_stderr(true, end) == "\x1b]9;s ]0;odd  is finished, best loss 0.5\x1b\\\a");
  CHECK(on_stderr(false, end).empty());
  setenv("TERM", "dumb", 1);
  CHECK(on_stderr(true, end).empty());
  unsetenv("TERM");
  CHECK(on_stderr(true, end).empty());
}

TEST_CASE("what an ended run was is read from its folder") {
  const testing::TemporaryFolder folder;
  const fs::path run = folder.path() / "s";
  testing::begin_experiment(run);
  testing::add_trial(run, 0, R"({"lr":0.1})", "{\"loss\":3,\"done\":true}\n");
  testing::add_trial(run, 1, R"({"lr":0.2})", "{\"loss\":2,\"done\":true}\n");
  const EndedRun told = ended_run(run, "finished");
  CHECK(told.name == "s");
  CHECK(told.trials == 2);
  REQUIRE(told.best.has_value());
  CHECK(told.best->trial == testing::trial_name(1));
  CHECK(told.best->value == 2);
  CHECK(end_environment(told).at("TUNE_BEST_CONFIG") == R"({"lr":0.2})");
  const EndedRun none = ended_run(folder.path() / "none", "failed");
  CHECK(none.status == "failed");
  CHECK_FALSE(none.best.has_value());
  CHECK_FALSE(end_environment(none).contains("TUNE_BEST_TRIAL"));
}

TEST_CASE("the count of steps that a trial's own text hides is the best value all the same") {
  const testing::TemporaryFolder folder;
  const fs::path run = folder.path() / "s";
  testing::begin_experiment(run);
  testing::write_text(run / "experiment.json", testing::spec_text("training_iteration"));
  testing::add_trial(run, 0, R"({"lr":0.1})",
                     "{\"training_iteration\":\"epoch 1\"}\n"
                     "{\"training_iteration\":\"epoch 2\",\"done\":true}\n");
  const EndedRun told = ended_run(run, "finished");
  REQUIRE(told.best.has_value());
  CHECK(told.best->value == 2);
}

}  // namespace
}  // namespace tune
