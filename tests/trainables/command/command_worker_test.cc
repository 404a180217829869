// Programs as trials: what they are given, and where their reports are read.
#include <doctest/doctest.h>

#include "core/refusal.h"
#include "trainables/command/command_process.h"

namespace tune {
namespace {

using namespace tune::testing;

std::string trial_file(const TemporaryFolder& folder, const std::string& name) {
  return read_text(folder.path() / "0a1b2_00007" / name);
}

TEST_CASE("a program reports on TUNE_FD and by lines of its output") {
  TemporaryFolder folder;
  CommandProcess worker(shell("echo '{\"x\": 1}' >&$TUNE_FD; echo hello; echo 'tune: {\"x\": 2}'; "
                              "echo oops >&2"),
                        start_in(folder.path()));
  const std::string results = worker.results();
  CHECK((results == "{\"x\":1}\n{\"x\":2}\n" || results == "{\"x\":2}\n{\"x\":1}\n"));
  CHECK(worker.ended().outcome == Outcome::kCompleted);
  CHECK(worker.wait() == 0);
  CHECK(trial_file(folder, "stdout") == "--- attempt 1 ---\nhello\ntune: {\"x\": 2}\n");
  CHECK(trial_file(folder, "stderr") == "--- attempt 1 ---\noops\n");
  CHECK(worker.warnings().empty());
}

TEST_CASE("a program finds its configuration in words, variables and a file") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.config = pack(Config{{"lr", 0.5}, {"model", {{"act", "re lu"}}}});
  start.experiment.environment = {{"MINE", "of the sweep"}};
  CommandSettings settings = shell(
      "echo \"$1|$2|$TUNE_PARAM_lr|$TUNE_PARAM_model_act|$TUNE_TRIAL_ID|$TUNE_SEED|$TUNE_ATTEMPT|"
      "$TUNE_CPUS|$MINE|$${TUNE_CHECKPOINT-none}|$TUNE_CONTRACT\"; cat $TUNE_CONFIG; "
      "test $PWD != $TUNE_TRIAL_DIR && touch $TUNE_TRIAL_DIR/mine");
  settings.command.words.insert(settings.command.words.end(), {"sh", "${lr}", "${model/act} x"});
  CommandProcess worker(settings, start);
  CHECK(worker.ended().outcome == Outcome::kCompleted);
  CHECK(trial_file(folder, "stdout") ==
        "--- attempt 1 ---\n0.5|re lu x|0.5|re lu|0a1b2_00007|11|1|1|of the sweep|none|1\n"
        "{\n  \"lr\": 0.5,\n  \"model\": {\n    \"act\": \"re lu\"\n  }\n}\n");
  CHECK(std::filesystem::exists(folder.path() / "0a1b2_00007/mine"));
}

TEST_CASE("reports are read where the sweep says") {
  const struct {
    Value report;
    const char* script;
    const char* results;
  } cases[] = {
      {"fd", "echo '{\"x\": 1}' >&$TUNE_FD; echo 'tune: {\"x\": 2}'", "{\"x\":1}\n"},
      {{{"stdout", "json"}}, "echo '{\"x\": 1}'; echo 'tune: {\"x\": 2}'; printf '{\"x\": 3}'",
       "{\"x\":1}\n{\"x\":3}\n"},
      {{{"stdout", "x=(?P<x>\\d+)"}}, "echo x=1; echo y=2; test -z \"$TUNE_FD\" && printf x=3",
       "{\"x\":1}\n{\"x\":3}\n"},
      {{{"file", "m.jsonl"}},
       "cd $TUNE_TRIAL_DIR; echo '{\"x\": 1}' > m.jsonl; printf '{\"x\"' >> m.jsonl; sleep 0.2; "
       "echo ': 2}' >> m.jsonl; echo 'tune: {\"x\": 3}'",
       "{\"x\":1}\n{\"x\":2}\n"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.script);
    TemporaryFolder folder;
    CommandProcess worker(shell(one.script, one.report), start_in(folder.path()));
    CHECK(worker.results() == one.results);
    CHECK(worker.ended().outcome == Outcome::kCompleted);
  }
}

TEST_CASE("a file of an earlier attempt is not read again") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.attempt = {2};
  const auto trial = folder.path() / "0a1b2_00007";
  std::filesystem::create_directories(trial);
  std::ofstream(trial / "m.jsonl") << "{\"x\": 9}\n";
  CommandProcess worker(shell("echo '{\"x\": 1}' >> $TUNE_TRIAL_DIR/m.jsonl", {{"file", "m.jsonl"}}),
                        start);
  CHECK(worker.results() == "{\"x\":1}\n");
  CHECK(read_text(trial / "m.jsonl.a1") == "{\"x\": 9}\n");
}

TEST_CASE("a program that ends without a report is told of, with the way to report") {
  const struct {
    Value report;
    const char* warning;
  } cases[] = {
      {"auto", "s.yaml:2: report: the program ended without a report: print lines like tune: {"},
      {{{"stdout", "loss=(?P<loss>.*)"}}, "no line of its standard output has 'loss=(?P<loss>.*)'"},
      {{{"file", "m.jsonl"}}, "to m.jsonl in the trial's folder"},
  };
  for (const auto& one : cases) {
    TemporaryFolder folder;
    CommandSettings settings = shell("echo lost: 1", one.report);
    settings.places["report"] = "s.yaml:2";
    CommandProcess worker(settings, start_in(folder.path()));
    CHECK(worker.ended().outcome == Outcome::kCompleted);
    CHECK_HAS(worker.warnings(), one.warning);
  }
}

TEST_CASE("a program that fails, or cannot be understood, fails its trial by a clear cause") {
  const struct {
    Value report;
    const char* script;
    const char* cause;
  } cases[] = {
      {"auto", "exit 3", "the program exited with code 3"},
      {"auto", "kill -9 $$", "the program was killed by signal 9 (SIGKILL), as the kernel does"},
      {"auto", "nowhere-to-be-found", "exited with code 127 (a program that it starts is not there)"},
      {"auto", "echo garbage >&$TUNE_FD",
       "s.yaml:2: report: line 1 of TUNE_FD: neither a report"},
      {"auto", "printf 'tune: {\"x\": ' ",
       "line 1 of standard output: reading a report: no JSON at byte"},
      {"fd", "printf '{\"x\": 1' >&$TUNE_FD", "the program ended in the middle of it"},
      {"fd", "echo hello 9 >&$TUNE_FD", "this tune speaks version 1"},
      {"fd", "echo saved >&$TUNE_FD", "was not told to save"},
      {"fd", "(echo '{}'; echo hello 1) >&$TUNE_FD", "says hello after its first report"},
      {{{"stdout", "json"}}, "echo \"{'x': 1}\"", "no JSON at byte"},
      {{{"file", "m.jsonl"}}, "echo x > $TUNE_TRIAL_DIR/m.jsonl; sleep 20", "line 1 of m.jsonl"},
      // 1 GB without a newline: the first MiB is enough.
      {"fd", "head -c 1000000000 /dev/zero >&$TUNE_FD", "neither a report"},
      {"fd", "(printf '{'; head -c 1000000000 /dev/zero) >&$TUNE_FD",
       "line 1 of TUNE_FD: a report has at most 1048576 bytes"},
      {"auto", "echo; printf 'tune: {'; exec head -c 1000000000 /dev/zero",
       "line 2 of standard output: a report has at most 1048576 bytes"},
      {{{"stdout", "json"}}, "printf '{'; exec head -c 1000000000 /dev/zero",
       "line 1 of standard output: a report has at most 1048576 bytes"},
      {{{"file", "m.jsonl"}}, "truncate -s 1G $TUNE_TRIAL_DIR/m.jsonl; sleep 20",
       "line 1 of m.jsonl: a report has at most 1048576 bytes"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.script);
    TemporaryFolder folder;
    CommandSettings settings = shell(one.script, one.report);
    settings.places["report"] = "s.yaml:2";
    CommandProcess worker(settings, start_in(folder.path()));
    CHECK(worker.ended().outcome == Outcome::kException);
    CHECK_HAS(worker.ended().cause, one.cause);
    CHECK(worker.wait() != 0);
  }
}

TEST_CASE("reports before a failure count, and half a line is not the cause") {
  TemporaryFolder folder;
  CommandProcess worker(shell("echo 'tune: {\"x\": 1}'; printf 'tune: {\"x'; exit 4"),
                        start_in(folder.path()));
  CHECK(worker.results() == "{\"x\":1}\n");
  CHECK(worker.ended().cause == "the program exited with code 4");
}

TEST_CASE("a program that cannot be started names its place and what to do") {
  TemporaryFolder folder;
  const auto script = folder.path() / "script";
  std::ofstream(script) << "#!/nowhere/python\n";
  const std::pair<std::string, std::string> cases[] = {
      {"./nowhere/train", "s.yaml:1: command: starting ./nowhere/train: No such file"},
      {"nowhere-to-be-found", "it is in no folder of PATH"},
      {script, "it is there, but cannot be executed"},
  };
  for (const auto& [program, cause] : cases) {
    CommandSettings settings = shell("");
    settings.command.words = {program};
    settings.places["command"] = "s.yaml:1";
    CommandProcess worker(settings, start_in(folder.path()));
    CHECK_HAS(worker.ended().cause, cause);
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  }
  CommandSettings settings = shell("echo ${lr}");
  CommandProcess worker(settings, start_in(folder.path()));
  CHECK_HAS(worker.ended().cause, "command: command/2: this configuration has no lr");
}

// Of the worker's own, not of files that it has mapped.
long memory_kb(const CommandProcess& worker) {
  std::ifstream status("/proc/" + std::to_string(worker.pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  }
  return 0;
}

TEST_CASE("a program that prints a GB without a line end costs little memory") {
  TemporaryFolder folder;
  const auto trial = folder.path() / "0a1b2_00007";
  std::filesystem::create_directories(trial);
  std::filesystem::create_symlink("/dev/null", trial / "stdout");
  CommandProcess worker(shell("for bytes in 5000000 1000000000; do head -c $bytes /dev/zero; "
                              "echo; echo 'tune: {\"x\": 1}'; "
                              "while ! test -e $TUNE_TRIAL_DIR/on; do sleep 0.01; done; done"),
                        start_in(folder.path()));
  CHECK(unpack(worker.expect<Reported>().result).dump() == "{\"x\":1}");
  const long before = memory_kb(worker);
  std::ofstream(trial / "on") << "\n";
  CHECK(unpack(worker.expect<Reported>().result).dump() == "{\"x\":1}");
  [[maybe_unused]] const long after = memory_kb(worker);
  CHECK(before > 1000);  // a MiB is kept
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what was freed
  CHECK(after < before + 1000);
#endif
}

TEST_CASE("a program far ahead of its verdicts meets a full pipe, and loses no report") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"training_iteration", 1};
  CommandProcess worker(shell("yes 'tune: {\"x\": 1}' | head -n 200000; "  // 3.4 MB
                              "touch $TUNE_TRIAL_DIR/printed; sleep 60"),
                        start);
  for (int iteration = 1; iteration <= 100; ++iteration) {
    const auto report = worker.expect<Reported>();
    CHECK(report.iteration == static_cast<std::uint64_t>(iteration));
    CHECK(report.waiting);
    if (iteration < 100) worker.send(Continue{{7}, {1}, {"training_iteration", iteration + 1.0}});
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "0a1b2_00007/printed"));
  worker.send(StopAttempt{{7}, {1}, StopKind::kStop, {}});
  CHECK(worker.ended().outcome == Outcome::kStopped);
  CHECK(worker.wait() == 0);
}

}  // namespace
}  // namespace tune
