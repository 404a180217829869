#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include <doctest/doctest.h>

#include "trainables/rank_failure.h"
#include "trainables/temporary_folder.h"
#include "trainables/worker_process.h"

using namespace tune;
using namespace tune::testing;

namespace {

// Counts; fails where the configuration says.
class Counter : public Trainable {
 public:
  ~Counter() override {
    if (crash_at_end_) std::abort();
    if (tells_end_) std::printf("ends after %s\n", has_rank_failed() ? "a failure" : "all steps");
  }
  void setup(const Config& config) override {
    fail_in_ = config.get_or("fail_in", "");
    crash_at_end_ = config.get_or("crash_at_end", false);
    tells_end_ = config.get_or("tells_end", false);
    std::printf("setup of attempt %u\n", context().attempt());
    fail("setup");
  }
  Result step() override {
    ++count_;
    fail("step");
    if (fail_in_ == "exit") std::exit(3);
    return {{"count", count_},
            {"iteration_seen", context().iteration()},
            {"timesteps_this_iter", 10},
            {"seed", context().seed()},
            {"loss", {{"test", 1.0 / count_}}}};
  }
  void save(const std::filesystem::path& directory) override {
    std::ofstream(directory / "count") << count_;
    std::filesystem::create_directory(directory / "more");
    std::ofstream(directory / "more" / "file") << "x";
    fail("save");
  }
  void load(const std::filesystem::path& directory) override {
    std::ifstream(directory / "count") >> count_;
    fail("load");
  }

 private:
  void fail(const std::string& where) const {
    if (fail_in_ == where) throw std::runtime_error("no luck");
    if (fail_in_ == where + "_int") throw 42;
  }
  std::string fail_in_;
  bool crash_at_end_ = false;
  bool tells_end_ = false;
  int count_ = 0;
};

class Forgetful : public Trainable {
 public:
  void setup(const Config&) override {}
  Result step() override { return {{"x", 1}}; }
};

// Its checkpoint is copied, and written when the file `gate` is there.
class Copier : public Trainable {
 public:
  void setup(const Config& config) override {
    gate_ = config.get<std::string>("gate");
    fail_in_ = config.get_or("fail_in", "");
  }
  Result step() override {
    if (++count_ == 2 && fail_in_ == "step") throw std::runtime_error("no luck");
    return {{"count", count_}};
  }
  void save(const std::filesystem::path& directory) override {
    context().write_beside([directory, gate = gate_, count = count_, fails = fail_in_ == "write"] {
      while (!std::filesystem::exists(gate)) std::this_thread::yield();
      if (fails) throw std::runtime_error("disk full");
      std::ofstream(directory / "count") << count;
    });
  }
  void load(const std::filesystem::path&) override {}

 private:
  std::filesystem::path gate_;
  std::string fail_in_;
  int count_ = 0;
};

class Sleeper : public Trainable {
 public:
  void setup(const Config&) override {}
  Result step() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return {{"x", 1}};
  }
};

const TrainableEntry kCopier = trainable_entry<Copier>("Copier");
const TrainableEntry kCounter = trainable_entry<Counter>("Counter");
const TrainableEntry kSleeper = trainable_entry<Sleeper>("Sleeper");
const TrainableEntry kForgetful = trainable_entry<Forgetful>("Forgetful");

StopRule after(double iterations) {
  return {"training_iteration", iterations, false};
}

}  // namespace

TEST_CASE("a worker reports each step and ends at the stop rule") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.stop = {after(3)};
  WorkerProcess worker(kCounter, start);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto report = worker.expect<Reported>();
    CHECK(report.trial == TrialNumber{7});
    CHECK(report.attempt == AttemptNumber{1});
    CHECK(report.iteration == i);
    CHECK(report.iterations_since_restore == i);
    CHECK(report.timesteps_total == 10.0 * static_cast<double>(i));
    CHECK(report.final == (i == 3));
    CHECK_FALSE(report.waiting);
    CHECK(report.time_total >= report.time_this_iter);
    CHECK(report.time_total == report.time_since_restore);
    const Value result = unpack(report.result);
    CHECK(result.get<int>("count") == static_cast<int>(i));
    CHECK(result.get<std::uint64_t>("iteration_seen") == i - 1);
    CHECK(result.get<std::uint64_t>("seed") == 11);
  }
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK(worker.wait() == 0);
  CHECK(read_text(folder.path() / "0a1b2_00007/stdout") ==
        "--- attempt 1 ---\nsetup of attempt 1\n");
}

TEST_CASE("every stop rule ends a trial, whichever comes first") {
  const struct {
    std::vector<StopRule> rules;
    std::uint64_t last;
  } cases[] = {
      {{after(5), {"count", 2, false}}, 2},
      {{{"loss/test", 0.3, true}}, 4},  // 1/4 is the first <= 0.3
      {{{"not/there", 0, false}, after(3)}, 3},
      {{{"timesteps_total", 35, false}}, 4},  // 10 a step
      {{{"iterations_since_restore", 1, false}}, 1},
      {{{"time_total_s", 0, false}}, 1},
  };
  for (const auto& one : cases) {
    TemporaryFolder folder;
    StartWorker start = start_in(folder.path());
    start.experiment.stop = one.rules;
    WorkerProcess worker(kCounter, start);
    Reported report;
    do {
      report = worker.expect<Reported>();
    } while (!report.final);
    CHECK(report.iteration == one.last);
  }
}

TEST_CASE("a trial over its time limit ends at the step boundary") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.max_trial_time = std::chrono::nanoseconds(1);
  WorkerProcess worker(kCounter, start);
  CHECK(worker.expect<Reported>().final);
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
}

// Of the double of an agent: else each test that a worker waits would hold for a slow step too.
TEST_CASE("a worker that sleeps in a step is not taken for one that waits") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"training_iteration", 1};
  WorkerProcess worker(kSleeper, start);
  CHECK_FALSE(worker.says_nothing());  // it waits when it has reported
  CHECK(worker.expect<Reported>().waiting);
}

TEST_CASE("a worker waits at its milestone for the verdict") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"training_iteration", 2};
  WorkerProcess worker(kCounter, start);
  CHECK_FALSE(worker.expect<Reported>().waiting);
  CHECK(worker.expect<Reported>().waiting);
  CHECK(worker.says_nothing());
  worker.send(Continue{{7}, {1}, {"count", 4}});
  CHECK_FALSE(worker.expect<Reported>().waiting);
  CHECK(worker.expect<Reported>().waiting);
  worker.send(StopAttempt{{7}, {1}, StopKind::kStop, {}});
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kStopped);
  CHECK(worker.wait() == 0);
}

TEST_CASE("a report without the milestone's attribute never waits") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"no/such", 0};
  start.experiment.stop = {after(4)};
  WorkerProcess worker(kCounter, start);
  for (int i = 0; i < 4; ++i) CHECK_FALSE(worker.expect<Reported>().waiting);
}

TEST_CASE("a stop is carried out at the next step boundary without a milestone") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.checkpoint.at_end = true;
  WorkerProcess worker(kCounter, start);
  worker.expect<Reported>();
  worker.send(StopAttempt{{7}, {1}, StopKind::kStop, {}});
  std::optional<WorkerEvent> event;
  std::uint64_t last = 0;
  while (event = worker.next(), event && std::holds_alternative<Reported>(*event)) {
    last = std::get<Reported>(*event).iteration;
  }
  REQUIRE(event);
  CHECK(std::get<RankSaved>(*event).iteration >= last);
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kStopped);
}

TEST_CASE("checkpoints are written whole into a temporary folder of iteration and attempt") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.attempt = {2};
  start.experiment.stop = {after(4)};
  start.experiment.checkpoint = {.frequency = 2, .at_end = true, .keep = 1};
  const auto trial = folder.path() / "0a1b2_00007";
  const auto leftover = trial / ".checkpoint_000002.tmp-2" / "stale";
  std::filesystem::create_directories(leftover);
  WorkerProcess worker(kCounter, start);
  worker.expect<Reported>();
  worker.expect<Reported>();
  const auto saved = worker.expect<RankSaved>();
  CHECK(saved.iteration == 2);
  CHECK(saved.timesteps_total == 20.0);
  worker.expect<Reported>();
  CHECK(worker.expect<Reported>().final);
  CHECK(worker.expect<RankSaved>().iteration == 4);  // due twice, written once
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK_FALSE(std::filesystem::exists(leftover));
  CHECK(read_text(trial / ".checkpoint_000002.tmp-2" / "count") == "2");
  CHECK(read_text(trial / ".checkpoint_000004.tmp-2" / "count") == "4");
}

// Its writer waits for open_gate.
StartWorker copying_in(const std::filesystem::path& folder, const char* fail_in = "") {
  StartWorker start = start_in(folder);
  start.hears_copied = true;
  start.experiment.checkpoint.frequency = 2;
  start.launch.config = pack(Config{{"gate", (folder / "gate").string()}, {"fail_in", fail_in}});
  return start;
}

void open_gate(const std::filesystem::path& folder) {
  std::ofstream(folder / "gate") << "open";
}

TEST_CASE("steps go on while the copy of a checkpoint is written, and the next save waits for it") {
  TemporaryFolder folder;
  StartWorker start = copying_in(folder.path());
  start.experiment.stop = {after(4)};
  start.experiment.checkpoint.at_end = true;
  WorkerProcess worker(kCopier, start);
  CHECK(worker.expect<Reported>().iteration == 1);
  CHECK(worker.expect<Reported>().iteration == 2);
  CHECK(worker.expect<RankCopied>().iteration == 2);
  CHECK(worker.expect<Reported>().iteration == 3);
  CHECK(worker.expect<Reported>().iteration == 4);
  CHECK(worker.says_nothing());
  open_gate(folder.path());
  CHECK(worker.expect<RankSaved>().iteration == 2);
  CHECK(worker.expect<RankCopied>().iteration == 4);
  CHECK(worker.expect<RankSaved>().iteration == 4);
  worker.expect<WorkerEnded>();
  CHECK(read_text(folder.path() / "0a1b2_00007/.checkpoint_000002.tmp-1/count") == "2");
}

TEST_CASE("a pause waits for the writer of its checkpoint") {
  TemporaryFolder folder;
  StartWorker start = copying_in(folder.path());
  start.launch.until = {"training_iteration", 2};
  WorkerProcess worker(kCopier, start);
  worker.expect<Reported>();
  worker.expect<Reported>();
  CHECK(worker.expect<RankCopied>().iteration == 2);
  worker.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
  CHECK(worker.says_nothing());
  open_gate(folder.path());
  CHECK(worker.expect<RankSaved>().iteration == 2);
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kPaused);
}

TEST_CASE("while rank 0 waits for its writer, the other ranks are told that it is alone") {
  TemporaryFolder folder;
  StartWorker start = copying_in(folder.path());
  start.experiment.stop = {after(3)};
  start.launch.ranks = 2;
  WorkerProcess worker(kCopier, start);
  worker.expect<PhaseDone>();  // setup
  worker.expect<GroupStep>();
  worker.expect<Reported>();
  worker.expect<GroupStep>();
  worker.expect<Reported>();
  std::optional<WorkerEvent> event;
  bool is_alone = false;
  while (event = worker.next(), event && !std::holds_alternative<WorkerEnded>(*event)) {
    if (const auto* alone = std::get_if<RankAlone>(&*event)) {
      is_alone = alone->begins;
      if (is_alone) open_gate(folder.path());
    }
    if (std::holds_alternative<RankSaved>(*event)) CHECK(is_alone);
  }
  CHECK(event);
  CHECK_FALSE(is_alone);
}

TEST_CASE("a copy that cannot be written fails the attempt as a failed save does") {
  TemporaryFolder folder;
  StartWorker start = copying_in(folder.path(), "write");
  open_gate(folder.path());
  WorkerProcess worker(kCopier, start);
  std::optional<WorkerEvent> event;
  while (event = worker.next(), event && !std::holds_alternative<WorkerEnded>(*event)) {
    CHECK_FALSE(std::holds_alternative<RankSaved>(*event));
  }
  REQUIRE(event);
  CHECK(std::get<WorkerEnded>(*event).outcome == Outcome::kException);
  CHECK(std::get<WorkerEnded>(*event).cause == "save: disk full");
}

TEST_CASE("a trial that fails first writes the checkpoint that it has copied") {
  TemporaryFolder folder;
  StartWorker start = copying_in(folder.path(), "step");
  start.experiment.checkpoint.frequency = 1;
  WorkerProcess worker(kCopier, start);
  worker.expect<Reported>();
  worker.expect<RankCopied>();
  CHECK(worker.says_nothing());
  open_gate(folder.path());
  CHECK(worker.expect<RankSaved>().iteration == 1);
  CHECK(worker.expect<WorkerEnded>().cause == "step: no luck");
}

TEST_CASE(
    "a copy is written at once for an agent that does not hear of copies, and by other ranks") {
  for (const std::uint32_t rank : {0u, 1u}) {
    TemporaryFolder folder;
    StartWorker start = copying_in(folder.path());
    open_gate(folder.path());
    start.experiment.checkpoint.frequency = 1;
    start.hears_copied = rank == 1;
    start.rank = rank;
    start.launch.ranks = rank + 1;
    std::filesystem::create_directories(folder.path() / "0a1b2_00007/.checkpoint_000001.tmp-1");
    WorkerProcess worker(kCopier, start);
    if (rank == 1) {
      worker.expect<PhaseDone>();
      worker.send(GroupStep{1, GroupAction::kStep});
      worker.expect<PhaseDone>();
      worker.send(GroupStep{1, GroupAction::kSave});
    } else {
      worker.expect<Reported>();
    }
    CHECK(worker.expect<RankSaved>().iteration == 1);
  }
}

TEST_CASE("a paused trial saves even when no checkpoint is due, and goes on from there") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"training_iteration", 3};
  Duration before{};
  {
    WorkerProcess worker(kCounter, start);
    for (int i = 0; i < 3; ++i) before = worker.expect<Reported>().time_total;
    worker.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
    CHECK(worker.expect<RankSaved>().iteration == 3);
    CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kPaused);
  }
  const auto trial = folder.path() / "0a1b2_00007";
  std::filesystem::rename(trial / ".checkpoint_000003.tmp-1", trial / "checkpoint_000003");
  start.launch.attempt = {2};
  start.launch.restore_iteration = 3;
  start.launch.time_total = before;
  start.launch.timesteps_total = 30;
  start.launch.until = {"training_iteration", 4};
  WorkerProcess worker(kCounter, start);
  const auto report = worker.expect<Reported>();
  CHECK(report.iteration == 4);
  CHECK(report.iterations_since_restore == 1);
  CHECK(report.timesteps_total == 40.0);
  CHECK(report.time_total == before + report.time_since_restore);
  CHECK(unpack(report.result).get<int>("count") == 4);
  CHECK(read_text(trial / "stdout") ==
        "--- attempt 1 ---\nsetup of attempt 1\n--- attempt 2 ---\nsetup of attempt 2\n");
}

TEST_CASE("a trainable that cannot save is lost when it is told to pause") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"training_iteration", 1};
  WorkerProcess worker(kForgetful, start);
  worker.expect<Reported>();
  worker.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kLost);
}

TEST_CASE("what a trainable throws is told with the place it came from") {
  const struct {
    const char* where;
    const char* cause;
  } cases[] = {
      {"setup", "setup: no luck"},
      {"step", "step: no luck"},
      {"save", "save: no luck"},
      {"setup_int", "setup: threw something that is not a std::exception (int)"},
  };
  for (const auto& one : cases) {
    TemporaryFolder folder;
    StartWorker start = start_in(folder.path());
    start.experiment.checkpoint.frequency = 1;
    start.launch.config = pack(Config{{"fail_in", one.where}});
    WorkerProcess worker(kCounter, start);
    std::optional<WorkerEvent> event;
    while (event = worker.next(), event && std::holds_alternative<Reported>(*event)) {
    }
    REQUIRE(event);
    const auto ended = std::get<WorkerEnded>(*event);
    CHECK(ended.outcome == Outcome::kException);
    CHECK(ended.cause == one.cause);
    CHECK(WEXITSTATUS(worker.wait()) == 1);
    CHECK(read_text(folder.path() / "0a1b2_00007/stderr") ==
          "--- attempt 1 ---\nerror: " + std::string(one.cause) + "\n");
  }
}

TEST_CASE("a missing checkpoint is an error, not a fresh start") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.restore_iteration = 5;
  start.launch.restore_attempt = {4};
  std::filesystem::create_directories(folder.path() / "0a1b2_00007" / "checkpoint_000005");
  WorkerProcess worker(kCounter, start);
  const auto ended = worker.expect<WorkerEnded>();
  CHECK(ended.outcome == Outcome::kException);
  CHECK(ended.cause.find("load: the checkpoint") == 0);
  CHECK(ended.cause.find("checkpoint_000005-a4") != std::string::npos);
}

TEST_CASE("a configuration of the wrong type fails in setup with the key's name") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.config = pack(Config{{"fail_in", 3}});
  WorkerProcess worker(kCounter, start);
  const auto ended = worker.expect<WorkerEnded>();
  CHECK(ended.cause.find("setup: ") == 0);
  CHECK(ended.cause.find("fail_in") != std::string::npos);
}

TEST_CASE("a program that exits in a step says no last word and leaves its exit code") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.config = pack(Config{{"fail_in", "exit"}});
  WorkerProcess worker(kCounter, start);
  CHECK_FALSE(worker.next());
  CHECK(WEXITSTATUS(worker.wait()) == 3);
}

TEST_CASE("a crash of the destructor is not taken for a clean end") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.config = pack(Config{{"crash_at_end", true}});
  start.experiment.stop = {after(1)};
  WorkerProcess worker(kCounter, start);
  CHECK(worker.expect<Reported>().final);
  CHECK_FALSE(worker.next());
  const int status = worker.wait();
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}

TEST_CASE("a trainable whose attempt failed can tell so when it ends, and cut its connections") {
  for (const char* fail_in : {"", "step"}) {
    TemporaryFolder folder;
    StartWorker start = start_in(folder.path());
    start.launch.config = pack(Config{{"fail_in", fail_in}, {"tells_end", true}});
    start.experiment.stop = {after(1)};
    WorkerProcess worker(kCounter, start);
    while (worker.next()) {
    }
    worker.wait();
    const std::string said = read_text(folder.path() / "0a1b2_00007/stdout");
    CHECK(said.ends_with(*fail_in == '\0' ? "ends after all steps\n" : "ends after a failure\n"));
  }
}

TEST_CASE("a worker ends by itself when its agent is gone") {
  TemporaryFolder folder;
  SUBCASE("before it started") {
    WorkerProcess worker(kCounter);
    worker.hang_up();
    CHECK(WIFEXITED(worker.wait()));
  }
  SUBCASE("in the middle") {
    WorkerProcess worker(kCounter, start_in(folder.path()));
    worker.expect<Reported>();
    worker.hang_up();
    CHECK(WIFEXITED(worker.wait()));
  }
}

TEST_CASE("the environment of the experiment and of the rank reaches the trainable") {
  const auto entry = function_entry("f", [](const Config&, Session& session) {
    session.report({{"mine", std::getenv("MINE")}, {"rank", std::getenv("RANK")}});
  });
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.environment = {{"MINE", "yes"}, {"RANK", "overridden"}};
  start.environment = {{"RANK", "0"}};
  WorkerProcess worker(entry, start);
  const Value result = unpack(worker.expect<Reported>().result);
  CHECK(result.get<std::string>("mine") == "yes");
  CHECK(result.get<std::string>("rank") == "0");
}

TEST_CASE("with a hang timeout a rank alone shows once that setup is over") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.hang_timeout = std::chrono::seconds(60);
  start.experiment.stop = {after(1)};
  WorkerProcess worker(kCounter, start);
  CHECK(worker.expect<GroupStep>().iteration == 1);
  CHECK(worker.expect<Reported>().final);
}
