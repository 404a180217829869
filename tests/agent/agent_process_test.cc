// The real agent, zygote and workers; the test is the driver.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include <doctest/doctest.h>

#include "agent/test_node.h"
#include "core/checkpoint_name.h"
#include "core/platform/process.h"
#include "core/spawn.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;

namespace {

SetupExperiment stop_after(double iterations) {
  SetupExperiment setup;
  setup.stop = {{"training_iteration", iterations, false}};
  setup.checkpoint.at_end = false;
  return setup;
}

Launch with_ranks(std::uint32_t ranks) {
  Launch launch;
  launch.ranks = ranks;
  launch.cpu_units = ranks * kUnit;
  return launch;
}

const Config kEndless = {{"step_ms", 1}};

}  // namespace

TEST_CASE("a trial of this program runs, saves and ends; then the agent ends") {
  int captured = 41;
  TestNode node({function_entry("f", [&](const Config& config, Session& session) {
    const auto save = [](const std::filesystem::path& folder) {
      std::ofstream(folder / "state") << "saved";
    };
    session.report({{"answer", captured + config.get<int>("add")}}, save);
  })});
  CHECK(node.expect<ZygoteReady>().trainables.at(0).name == "f");
  SetupExperiment setup = stop_after(1);
  setup.checkpoint.at_end = true;
  node.set_up("f", setup);
  node.launch(0, {{"add", 1}});
  CHECK(node.expect<AttemptStarted>().pid > 0);
  const auto report = node.expect<Reported>();
  CHECK(report.final);
  CHECK(unpack(report.result).get<int>("answer") == 42);
  CHECK(node.expect<CheckpointSaved>().iteration == 1);
  CHECK(read_text(node.trial(0) / "checkpoint_000001" / "state") == "saved");
  const auto ended = node.expect_end(0);
  CHECK(ended.outcome == Outcome::kCompleted);
  CHECK(ended.cause.empty());
  const int status = node.shut_down();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a killed worker is its own trial's error alone") {
  TestNode node({}, plugin_zygote());
  node.set_up("Curve");
  node.launch(0, kEndless);
  const auto victim = node.expect<AttemptStarted>();
  node.launch(1, kEndless);
  node.expect<AttemptStarted>();
  ::kill(static_cast<pid_t>(victim.pid), SIGKILL);
  const auto ended = node.expect_end(0);
  CHECK(ended.outcome == Outcome::kSignal);
  CHECK(ended.code == SIGKILL);
  CHECK(ended.cause.find("killed by signal 9 (SIGKILL)") == 0);
  CHECK(node.expect<Reported>().trial.value == 1);
  node.send(StopAttempt{{1}, {1}, StopKind::kStop, 30s});
  CHECK(node.expect_end(1).outcome == Outcome::kStopped);
  CHECK(node.shut_down() == 0);
}

TEST_CASE("how a trial fails is told with its cause and the end of its stderr") {
  const struct {
    const char* in;
    const char* how;
    Outcome outcome;
    const char* cause;
  } cases[] = {
      {"setup", "throw", Outcome::kException, "setup: told to fail in setup"},
      {"step", "throw_int", Outcome::kException,
       "step: threw something that is not a std::exception (int)"},
      {"step", "exit", Outcome::kExit, "exited with code 3 before its trial was over"},
      {"step", "abort", Outcome::kSignal, "killed by signal 6 (SIGABRT)"},
      {"step", "segv", Outcome::kSignal, "killed by signal 11 (SIGSEGV)"},
      {"save", "throw", Outcome::kException, "save: told to fail in save"},
      {"step", "hang", Outcome::kHung, "no report for 0.2 s (hang_timeout_s), killed"},
  };
  TestNode node({}, plugin_zygote());
  SetupExperiment setup = stop_after(3);
  setup.checkpoint.frequency = 1;
  setup.hang_timeout = 200ms;
  node.set_up("Faulty", setup);
  std::uint32_t trial = 0;
  for (const auto& one : cases) {
    CAPTURE(one.in);
    CAPTURE(one.how);
    node.launch(trial, {{"fail_in", one.in}, {"fail_how", one.how}, {"fail_at", 2}});
    const auto ended = node.expect_end(trial);
    CHECK(ended.outcome == one.outcome);
    CHECK(ended.cause == one.cause);
    CHECK(ended.stderr_tail.find("--- attempt 1 ---") == 0);
    for (const auto& entry : std::filesystem::directory_iterator(node.trial(trial))) {
      CHECK(entry.path().string().find(".tmp-") == std::string::npos);
    }
    ++trial;
  }
}

TEST_CASE("a paused trial goes on from its checkpoint") {
  TestNode node({}, plugin_zygote());
  SetupExperiment setup;
  setup.stop = {{"training_iteration", 5, false}};
  node.set_up("Curve", setup);
  Launch launch;
  launch.until = {"training_iteration", 3};
  node.launch(0, {{"lr", 0.1}}, launch);
  const auto waits = node.expect<Reported>([](const Reported& report) { return report.waiting; });
  node.send(StopAttempt{{0}, {1}, StopKind::kPause, {}});
  const auto saved = node.expect<CheckpointSaved>();
  CHECK(saved.iteration == 3);
  CHECK(node.expect_end(0).outcome == Outcome::kPaused);
  launch.attempt = {2};
  launch.until = {};
  launch.restore_iteration = 3;
  launch.restore_attempt = {1};
  launch.time_total = saved.time_total;
  node.launch(0, {{"lr", 0.1}}, launch);
  const auto next = node.expect<Reported>();
  CHECK(next.iteration == 4);
  CHECK(next.time_total > waits.time_total);
  CHECK(unpack(next.result).get<double>("mean_accuracy") >
        unpack(waits.result).get<double>("mean_accuracy"));
  CHECK(node.expect_end(0).outcome == Outcome::kCompleted);
  CHECK(std::filesystem::exists(node.trial(0) / "checkpoint_000003"));
  CHECK(std::filesystem::exists(node.trial(0) / "checkpoint_000005-a2"));
}

TEST_CASE("a killed zygote costs no running trial") {
  TestNode node({}, plugin_zygote());
  node.expect<ZygoteReady>();
  const auto only = node.children_of_agent();
  REQUIRE(only.size() == 1);
  node.set_up("Curve");
  node.launch(0, kEndless);
  node.expect<AttemptStarted>();
  ::kill(only[0], SIGKILL);
  node.launch(1, kEndless);
  CHECK(node.expect<AttemptStarted>().trial.value == 1);
  const auto report = node.expect<Reported>([](const Reported& r) { return r.trial.value == 0; });
  node.expect<Reported>(
      [&](const Reported& r) { return r.trial.value == 0 && r.iteration > report.iteration; });
}

TEST_CASE("a zygote that cannot be started again is told, running trials go on") {
  TestNode node({function_entry("f", [](const Config&, Session& session) {
    while (session.report({{"x", 1}})) ::usleep(1000);
  })});
  node.expect<ZygoteReady>();
  const auto only = node.children_of_agent();
  REQUIRE(only.size() == 1);
  node.set_up("f");
  node.launch(0, {});
  node.expect<AttemptStarted>();
  ::kill(only[0], SIGKILL);
  CHECK(node.expect<NodeOut>().cause ==
        "the process that starts workers died: killed by signal 9 (SIGKILL)");
  node.expect<Reported>();
  node.launch(1, {});
  CHECK(node.expect_end(1).outcome == Outcome::kLost);
  node.send(StopAttempt{{0}, {1}, StopKind::kStop, 30s});
  CHECK(node.expect_end(0).outcome == Outcome::kStopped);
}

TEST_CASE("a plugin that cannot be loaded is told with the loader's words") {
  const struct {
    std::string plugin;
    const char* says;
  } cases[] = {
      {"/no/such/plugin.so", "/no/such/plugin.so"},
      {"libc.so.6", "has no trainables"},
  };
  for (const auto& one : cases) {
    TestNode node({}, plugin_zygote(one.plugin));
    const std::string error = node.expect<ZygoteReady>().error;
    CHECK(error.find("loading the plugin: ") == 0);
    CHECK(error.find(one.says) != std::string::npos);
    CHECK(node.shut_down() == 0);
  }
}

TEST_CASE("a zygote that dies while it loads is told with its end and what it printed") {
  TestNode node({}, {"/bin/sh", "-c", "echo cannot go on >&2; exit 7"});
  const std::string error = node.expect<ZygoteReady>().error;
  CHECK(error.find("failed 3 times in a row; at last it died: exited with code 7") !=
        std::string::npos);
  CHECK(error.find("cannot go on") != std::string::npos);
  CHECK(node.shut_down() == 0);
}

TEST_CASE("a log that is long in opening keeps the agent from nothing but its zygote") {
  const TemporaryFolder folder;
  const std::string log = folder.path() / "zygote.log";
  REQUIRE(::mkfifo(log.c_str(), 0600) == 0);  // opened as soon as somebody reads it
  TestNode node({}, plugin_zygote(), -1, 0, log);  // hears its first word
  CHECK(node.children_of_agent().empty());
  node.set_up("Curve");
  node.launch(0, kEndless);
  const FileDescriptor reader(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(node.expect<ZygoteReady>().error.empty());
  node.expect<Reported>();
  CHECK(node.shut_down() == 0);
}

TEST_CASE("an agent that is to end before its zygote could be started ends it when it can") {
  const TemporaryFolder folder;
  const std::string log = folder.path() / "zygote.log";
  REQUIRE(::mkfifo(log.c_str(), 0600) == 0);
  TestNode node({}, plugin_zygote(), -1, 0, log);
  node.set_up("Curve");
  node.launch(0, kEndless);
  node.send(Shutdown{});
  const FileDescriptor reader(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(node.wait_acknowledging() == 0);
}

TEST_CASE("a zygote program that is not there is told") {
  TestNode node({}, {"/no/such/tune-worker"});
  CHECK(node.expect<ZygoteReady>().error.find("/no/such/tune-worker") != std::string::npos);
  CHECK(node.shut_down() == 0);
}

TEST_CASE("signals that are not of the agent end neither workers nor zygote") {
  TestNode node({}, plugin_zygote());
  node.set_up("Curve");
  node.launch(0, kEndless);
  const auto told = [&] {
    const auto report = node.expect<Reported>();
    const auto all = node.children_of_agent();
    REQUIRE(all.size() == 2);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      for (const pid_t child : all) ::kill(child, signal);
    }
    node.expect<Reported>(
        [&](const Reported& later) { return later.iteration > report.iteration + 10; });
    CHECK(node.children_of_agent() == all);
  };
  told();
  // Those of the agent do: it is told to kill the attempt, by SIGTERM first.
  node.send(KillAttempt{{0}, {1}});
  CHECK(node.expect_end(0).outcome == Outcome::kLost);
}

TEST_CASE("a worker obeys itself, and its children obey it") {
  TestNode node({function_entry("f", [](const Config& config, Session& session) {
    if (config.get<bool>("self")) ::raise(SIGTERM);
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    ::kill(child, SIGTERM);
    int forked = 0;
    ::waitpid(child, &forked, 0);
    const int executed = std::system("kill -TERM $$; exit 9");
    session.report({{"forked", forked}, {"executed", executed}});
  })});
  node.set_up("f", stop_after(1));
  node.launch(0, {{"self", false}});
  const Value result = unpack(node.expect<Reported>().result);
  CHECK(result.get<int>("forked") == SIGTERM);  // as wait statuses
  CHECK(result.get<int>("executed") == SIGTERM);
  CHECK(node.expect_end(0).outcome == Outcome::kCompleted);
  node.launch(1, {{"self", true}});
  const auto ended = node.expect_end(1);
  CHECK(ended.outcome == Outcome::kSignal);
  CHECK(ended.code == SIGTERM);
}

TEST_CASE("a handler that user code installs for SIGTERM is its own") {
  static volatile std::sig_atomic_t came = 0;
  TestNode node({function_entry("f", [](const Config&, Session& session) {
    std::signal(SIGTERM, [](int) { came = 1; });
    while (came == 0) {
      if (!session.report({{"came", false}})) return;
      ::usleep(1000);
    }
    session.report({{"came", true}});
  })});
  node.set_up("f", stop_after(1e9));
  node.launch(0, {});
  const auto pid = static_cast<pid_t>(node.expect<AttemptStarted>().pid);
  node.expect<Reported>();  // it is there
  ::kill(pid, SIGTERM);
  CHECK(node.expect_end(0).outcome == Outcome::kCompleted);
}

TEST_CASE("an agent that is told to end lets its trials save and ends") {
  TestNode node({}, plugin_zygote());
  node.set_up("Curve");
  node.launch(0, kEndless);
  node.expect<Reported>();
  ::kill(node.agent(), SIGTERM);
  CHECK(node.expect<NodeOut>().cause == "its agent was told to end (SIGTERM)");
  const auto saved = node.expect<CheckpointSaved>();
  CHECK(node.expect_end(0).outcome == Outcome::kPaused);
  CHECK(std::filesystem::exists(node.trial(0) / checkpoint_name(saved.iteration, saved.attempt)));
  CHECK(node.wait_acknowledging() == 0);
}

// Of the memory that this rank shares with the others; 0: it has none.
ino_t shared_memory_number() {
  const char* descriptor = std::getenv(kSharedMemoryVariable);
  struct stat status {};
  const bool is_there = descriptor != nullptr && ::fstat(std::atoi(descriptor), &status) == 0;
  return is_there ? status.st_ino : 0;
}

TEST_CASE("the ranks of a group run in step and share a rendezvous and memory") {
  TestNode node({function_entry("f", [](const Config&, Session& session) {
    int port = 0;
    if (const char* descriptor = std::getenv(kRendezvousVariable)) {
      sockaddr_in address{};
      socklen_t size = sizeof address;
      ::getsockname(std::atoi(descriptor), reinterpret_cast<sockaddr*>(&address), &size);
      port = ntohs(address.sin_port);
    }
    const auto save = [&](const std::filesystem::path& folder) {
      std::ofstream(folder / std::getenv("RANK")) << port;
      std::ofstream(folder / ("memory." + std::string(std::getenv("RANK"))))
          << shared_memory_number();
    };
    const int told = std::atoi(std::getenv("MASTER_PORT"));
    while (session.report({{"same", port == told}, {"world", std::getenv("WORLD_SIZE")}}, save)) {
    }
  })});
  SetupExperiment setup = stop_after(3);
  setup.checkpoint = {.frequency = 0, .at_end = true, .keep = 1};
  node.set_up("f", setup);
  node.launch(0, {}, with_ranks(3));
  const auto report = node.expect<Reported>();
  CHECK(unpack(report.result).get<bool>("same"));
  CHECK(unpack(report.result).get<std::string>("world") == "3");
  CHECK(node.expect<CheckpointSaved>().iteration == 3);
  CHECK(node.expect_end(0).outcome == Outcome::kCompleted);
  const auto checkpoint = node.trial(0) / "checkpoint_000003";
  CHECK(read_text(checkpoint / "1") == "0");  // only rank 0 holds the socket
  CHECK(std::filesystem::exists(checkpoint / "2"));
  const std::string memory = read_text(checkpoint / "memory.0");
  CHECK(memory != "0");
  CHECK(read_text(checkpoint / "memory.1") == memory);
  CHECK(read_text(checkpoint / "memory.2") == memory);
  CHECK(std::filesystem::exists(node.trial(0) / "stderr.2"));
}

TEST_CASE("a rank that is killed ends its group with the first cause") {
  TestNode node({}, plugin_zygote());
  node.set_up("Faulty");
  node.launch(0, {{"fail_in", "step"}, {"fail_how", "segv"}, {"fail_at", 3}, {"fail_rank", 1}},
              with_ranks(3));
  const auto ended = node.expect_end(0);
  CHECK(ended.outcome == Outcome::kSignal);
  CHECK(ended.rank == 1);
  CHECK(ended.code == SIGSEGV);
  CHECK(node.children_of_agent().size() == 1);  // the zygote
}

TEST_CASE("without its driver the agent ends and leaves nothing behind") {
  TestNode node({}, plugin_zygote());
  node.set_up("Curve");
  node.launch(0, kEndless);
  node.launch(1, kEndless);
  for (const std::uint32_t trial : {0u, 1u}) {
    node.expect<Reported>([&](const Reported& report) { return report.trial.value == trial; });
  }
  const auto all = node.children_of_agent();
  CHECK(all.size() == 3);
  node.drop_driver();
  CHECK(WIFEXITED(node.wait_for_agent()));
  for (const pid_t child : all) CHECK(is_gone(child));
}

TEST_CASE("workers and zygote do not outlive a killed agent") {
  TestNode node({}, plugin_zygote());
  node.set_up("Curve");
  node.launch(0, kEndless);
  node.expect<Reported>();
  const auto all = node.children_of_agent();
  CHECK(all.size() == 2);
  ::kill(node.agent(), SIGKILL);
  node.wait_for_agent();
  for (const pid_t child : all) CHECK(is_gone(child));
}

TEST_CASE("what a worker leaves in its process group dies with it") {
  TestNode node({function_entry("f", [](const Config&, Session& session) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    session.report({{"child", child}});
  })});
  node.set_up("f", stop_after(1));
  node.launch(0, {});
  const pid_t child = unpack(node.expect<Reported>().result).get<int>("child");
  CHECK(node.expect_end(0).outcome == Outcome::kCompleted);
  CHECK(is_gone(child));
}

TEST_CASE("workers hold the experiment's lock, programs they start do not") {
  TemporaryFolder folder;
  const int lock = ::open((folder.path() / "lock").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(lock >= 0);
  TestNode node({function_entry("f",
                                [lock](const Config&, Session& session) {
                                  const std::string test =
                                      "test -e /proc/self/fd/" + std::to_string(lock);
                                  session.report({{"held", ::fcntl(lock, F_GETFD) >= 0},
                                                  {"passed_on", std::system(test.c_str()) == 0}});
                                })},
                {}, lock);
  node.set_up("f", stop_after(1));
  node.launch(0, {});
  const Value result = unpack(node.expect<Reported>().result);
  CHECK(result.get<bool>("held"));
  CHECK_FALSE(result.get<bool>("passed_on"));
  ::close(lock);
}

TEST_CASE("what nobody waits for is told while nothing else happens") {
  TestNode node({function_entry("f", [](const Config&, Session& session) {
    session.report({{"x", 1}});
    for (;;) ::pause();
  })});
  node.set_up("f");
  node.launch(0, {});
  const pid_t worker = static_cast<pid_t>(node.expect<AttemptStarted>().pid);
  CHECK_FALSE(node.expect<Reported>().waiting);
  CHECK(::kill(worker, SIGKILL) == 0);
  CHECK(node.expect_end(0).outcome == Outcome::kSignal);
}

TEST_CASE("how the zygote is linked is not passed on to what workers start") {
  ::setenv(kBindNowVariable, "1", 1);
  TestNode node({function_entry("f", [](const Config&, Session& session) {
    session.report({{"there", std::getenv(kBindNowVariable) != nullptr}});
  })});
  ::unsetenv(kBindNowVariable);
  node.set_up("f", stop_after(1));
  node.launch(0, {});
  CHECK_FALSE(unpack(node.expect<Reported>().result).get<bool>("there"));
}

TEST_CASE("many trials at once, each ends once") {
  TestNode node({}, plugin_zygote());
  node.set_up("empty_steps");
  constexpr std::uint32_t kTrials = 100;
  for (std::uint32_t trial = 0; trial < kTrials; ++trial) node.launch(trial, {{"steps", 20}});
  std::vector<int> ends(kTrials);
  for (std::uint32_t i = 0; i < kTrials; ++i) {
    const auto ended = node.expect<AttemptEnded>();
    CHECK(ended.outcome == Outcome::kCompleted);
    ++ends.at(ended.trial.value);
  }
  CHECK(std::ranges::all_of(ends, [](int count) { return count == 1; }));
  CHECK(node.children_of_agent().size() == 1);
}
