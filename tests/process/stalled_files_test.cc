// A file system that does not answer for a while.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <list>
#include <memory>
#include <string>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Longer than an agent may be silent.
constexpr std::chrono::seconds kStall{24};
constexpr std::size_t kStalledTrials = 4;
constexpr std::size_t kStalledSteps = 6;
constexpr const char* kQuickSteps = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 10}";

// A sweep in which one kind of call on files whose names have one shape does not return while
// begin() has been called and end() not yet (tests/programs/stalling_files.cc).
struct Stalled {
  Stalled(const std::string& call, const std::string& name) {
    box.set("LD_PRELOAD", TUNE_STALLING_FILES);
    box.set("STALL_FILE", stall);
    box.set("STALL_CALL", call);
    box.set("STALL_NAME", name);
  }
  void begin() const { box.write("stall", ""); }
  bool is_met() const {
    return Sandbox::eventually([&] { return fs::exists(stall.string() + ".met"); });
  }
  void end() const { fs::remove(stall); }

  void start(const std::string& text) {
    box.write("sweep.yaml", text);
    run.reset(new Running(box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"})));
  }
  void start(const char* config = kQuickSteps, std::size_t steps = kStalledSteps) {
    start(yaml({.config = config,
                .num_samples = kStalledTrials,
                .rest = "stop: {training_iteration: " + std::to_string(steps) +
                        "}\ncheckpoint: {frequency: 2}\n"}));
  }
  bool runs() const { return !run->ends_within(std::chrono::seconds(0)); }
  // Ends the stall, too.
  void check_completes() {
    end();
    const Finished done = run->wait();
    INFO(done.err);
    CHECK(done.code == 0);
    CHECK_FALSE(testing::has(done.err, "gone"));
    check_complete(box, "results/s", kStalledTrials, kStalledSteps);
    fs::remove(stall.string() + ".met");
    check_nothing_left(box, "results/s");
  }

  Sandbox box;
  fs::path stall = box.path() / "stall";
  std::unique_ptr<Running> run;
};

// Its trials fail once, in that way.
std::string faulty_sweep(const std::string& fails_in) {
  return yaml(
      {.trainable = "Faulty",
       .config = "{fail_in: " + fails_in + ", step_ms: 10}",
       .num_samples = kStalledTrials,
       .rest = "stop: {training_iteration: 6}\ncheckpoint: {frequency: 2}\nmax_failures: 1\n",
       .metric = "count"});
}

TEST_CASE("a file system that stalls for longer than an agent may be silent costs nothing") {
  Stalled name("name", "checkpoint_*");
  Stalled flush("flush", "?????_0000?");             // of a trial's folder, after that
  Stalled removal("remove", ".checkpoint_*.tmp-1");  // of what an attempt was writing
  Stalled program("execute", "tune-worker");         // that loads the trainable
  Stalled tail("read", "stderr");                    // what a trial that failed said last
  for (const Stalled* sweep : {&name, &flush, &removal, &program, &tail}) sweep->begin();
  name.start();
  flush.start();
  program.start();
  removal.start(faulty_sweep("save, fail_how: kill, fail_at: 2"));
  tail.start(faulty_sweep("step, fail_how: throw, fail_at: 3"));
  for (const Stalled* sweep : {&name, &flush, &removal, &program, &tail}) REQUIRE(sweep->is_met());
  CHECK_FALSE(name.run->ends_within(kStall));
  for (Stalled* sweep : {&name, &flush, &removal, &program, &tail}) {
    CHECK(sweep->runs());
    sweep->check_completes();
  }
}

TEST_CASE("while a checkpoint's removal stalls all trials report and end") {
  Stalled sweep("remove", ".checkpoint_*.tmp-gone");
  sweep.begin();
  sweep.start();
  REQUIRE(sweep.is_met());
  CHECK(Sandbox::eventually(
      [&] { return has_results(sweep.box, "results/s", kStalledTrials * kStalledSteps); }));
  CHECK(Sandbox::eventually(
      [&] { return testing::has(sweep.run->said(), "waiting until the last files are written"); }));
  CHECK(sweep.runs());
  sweep.check_completes();
}

TEST_CASE("while a look at the experiment's lock stalls results go on and a signal is taken") {
  Stalled sweep("look", "lock");
  sweep.start("{lr: {loguniform: [1e-3, 1.0]}, step_ms: 100}", 600);
  const auto has_more = [&](std::size_t count) {
    return Sandbox::eventually([&] { return has_results(sweep.box, "results/s", count); });
  };
  REQUIRE(has_more(1));
  sweep.begin();
  REQUIRE(sweep.is_met());
  CHECK(has_more(60));  // of 20 a second
  sweep.run->signal(SIGINT);
  CHECK(Sandbox::eventually([&] {
    return testing::has(sweep.box.read("results/s/events.jsonl"), "SIGINT: running trials save");
  }));
  sweep.end();
  CHECK(sweep.run->wait().code == 128 + SIGINT);
}

TEST_CASE("while a dead private store waits for the disk its driver takes a signal") {
  Stalled reason("remove", "room");          // of the probe that tells why it has ended
  Stalled start("execute", "redis-server");  // of the next one
  for (Stalled* sweep : {&reason, &start}) {
    Stalled& one = *sweep;
    one.start("{lr: {loguniform: [1e-3, 1.0]}, step_ms: 100}", 600);
    REQUIRE(Sandbox::eventually([&] { return has_results(one.box, "results/s", 1); }));
    one.begin();
    for (const pid_t store : one.box.processes("redis-server")) kill(store, SIGKILL);
    REQUIRE(one.is_met());
    one.run->signal(SIGINT);
    CHECK(Sandbox::eventually(
        [&] { return testing::has(one.run->said(), "SIGINT: running trials save"); }));
    CHECK(one.runs());
    one.end();
    CHECK(one.run->wait().code == 128 + SIGINT);
    check_nothing_left(one.box, "results/s");
  }
}

TEST_CASE("a sweep that ends while a new join key cannot be written says what it waits for") {
  Stalled sweep("name", "keys.json");
  sweep.start(yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 100}",
                    .num_samples = 2,
                    .rest = "stop: {training_iteration: 600}\nlisten: 127.0.0.1:0\n"}));
  REQUIRE(Sandbox::eventually([&] { return has_results(sweep.box, "results/s", 1); }));
  sweep.begin();
  Running rotation(sweep.box.start_tune({"token", "results/s", "--rotate"}));
  REQUIRE(sweep.is_met());
  sweep.run->signal(SIGINT);
  CHECK(Sandbox::eventually([&] {
    return testing::has(sweep.run->said(), "waiting until the new join key is written");
  }));
  CHECK(sweep.runs());
  sweep.end();
  CHECK(sweep.run->wait().code == 128 + SIGINT);
  rotation.wait();
}

}  // namespace
}  // namespace tune
