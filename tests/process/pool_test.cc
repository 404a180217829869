// Pools, with a stub as engine: it starts agents on this host, apart from the driver.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::has;

// An engine as three programs. A file `refuse` lets it refuse, `break` lets what it starts fail.
constexpr const char* kEngine = R"(#!/bin/sh
case "$1" in
start)
  [ -e refuse ] && { cat refuse >&2; exit 7; }
  script=$3
  [ -e break ] && script=./broken.sh
  setsid "$script" "$2" >>"$4" 2>&1 </dev/null &
  echo $! ;;
list)
  for pid in $(pgrep -f -- "[-]-name $2"); do
    name=$(tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n '/^--name$/{n;p}')
    [ -n "$name" ] && echo "$name|$pid|RUNNING||here"
  done
  [ -e queue ] && cat queue
  exit 0 ;;
stop) echo "$2" >>stopped; kill "$2" 2>/dev/null; exit 0 ;;
esac
)";

// Every host of it is this one.
constexpr const char* kSshToHere = R"(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
exec sh -c "$2"
)";

std::string sweep(int trials, const std::string& pool, int step_ms = 40,
                  const std::string& rest = "") {
  return yaml(
      {.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: " + std::to_string(step_ms) + "}",
       .num_samples = trials,
       .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1}\nlisten: lo\n" + rest +
               "pool:\n  engine: command\n  poll: 0.3\n  node: {cpu: 1}\n"
               "  start: [./engine.sh, start, \"${name}\", \"${script}\", \"${log}\"]\n"
               "  list: [./engine.sh, list, \"${prefix}\"]\n"
               "  stop: [./engine.sh, stop, \"${id}\"]\n" +
               pool});
}

struct Pooled {
  explicit Pooled(const std::string& text) {
    box.write("engine.sh", kEngine);
    box.write("broken.sh", "#!/bin/sh\necho no module named cuda\nexit 3\n");
    for (const char* file : {"engine.sh", "broken.sh"}) ::chmod((box.path() / file).c_str(), 0755);
    box.write("sweep.yaml", text);
  }
  void start() { run.reset(new Running(box.start_tune({"run", "sweep.yaml", "--name", "s"}))); }
  std::vector<pid_t> agents() const { return box.processes(std::string("agent\0--join-file", 17)); }
  bool has_agents(std::size_t count) const {
    return Sandbox::eventually([&] { return agents().size() == count; }, seconds(60));
  }
  bool has_started() const {
    return Sandbox::eventually([&] { return has_results(box, "results/s", 2); }, seconds(60));
  }
  std::string events() const { return box.read("results/s/events.jsonl"); }
  // Agents that have joined, by the events.
  std::size_t joined() const {
    std::size_t count = 0;
    const std::string text = events();
    for (std::size_t at = 0; (at = text.find("node_joined", at)) != std::string::npos; ++at)
      ++count;
    return count;
  }
  Finished finish() {
    Finished finished = run->wait(seconds(150));
    INFO(finished.err);
    CHECK(finished.code == 0);
    return finished;
  }

  Sandbox box;
  std::unique_ptr<Running> run;
};

TEST_CASE("a pool runs a sweep to its end on agents that an engine starts, and leaves none") {
  Pooled pooled(sweep(10, "  max: 2\n"));
  pooled.start();
  CHECK(pooled.has_started());
  CHECK(pooled.has_agents(2));
  const std::string nodes = pooled.box.tune({"nodes", "results/s"}).out;
  CHECK_HAS(nodes, "tune-");
  const fs::path join_file = pooled.box.path() / "results/s/nodes/join";
  struct stat status {};
  REQUIRE(::stat(join_file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const Finished finished = pooled.finish();
  check_complete(pooled.box, "results/s", 10, 8);
  check_nothing_left(pooled.box, "results/s");
  // With the sweep its token ends. The output of an agent is kept; the token was in no script and
  // on no command line.
  CHECK_FALSE(fs::exists(join_file));
  const std::string script = pooled.box.read("results/s/nodes/agent.sh");
  CHECK_HAS(script, "--join-file");
  CHECK_FALSE(has(script, "tune1."));
  bool has_log = false;
  for (const auto& entry : fs::directory_iterator(pooled.box.path() / "results/s/nodes")) {
    const bool is_log = entry.path().filename().string().starts_with("tune-");
    has_log = has_log || (is_log && has(read_file(entry.path()), "joined the experiment"));
  }
  CHECK(has_log);
  // The driver's own machine has nothing for trials.
  CHECK_HAS(finished.err, "offers 0 CPUs");
  CHECK(pooled.joined() >= 3);
}

TEST_CASE("a detached run returns before its pool has started anything, and goes on with it") {
  Pooled pooled(sweep(4, "  max: 1\n"));
  pooled.box.write("refuse", "the queue is closed");
  const Finished begun =
      pooled.box.start_tune({"run", "sweep.yaml", "--name", "s", "--detach"}).wait(seconds(60));
  INFO(begun.err);
  CHECK(begun.code == 0);
  CHECK_HAS(begun.err, "tune status results/s");
  CHECK(Sandbox::eventually(
      [&] { return has(pooled.box.read("results/s/detached.log"), "the queue is closed"); },
      seconds(60)));
  fs::remove(pooled.box.path() / "refuse");
  CHECK(
      Sandbox::eventually([&] { return pooled.box.processes("--detach").empty(); }, seconds(100)));
  check_complete(pooled.box, "results/s", 4, 8);
  check_nothing_left(pooled.box, "results/s");
}

TEST_CASE("an agent that is killed is replaced, and no trial fails by it") {
  Pooled pooled(sweep(12, "  max: 2\n", 300, "lease_s: 30\n"));
  pooled.start();
  CHECK(pooled.has_started());
  CHECK(pooled.has_agents(2));
  const std::size_t before = pooled.joined();
  // The engine tells that it is gone: nobody waits for its lease.
  kill(pooled.agents().front(), SIGKILL);
  CHECK(Sandbox::eventually([&] { return pooled.joined() > before; }, seconds(25)));
  const Finished finished = pooled.finish();
  CHECK_HAS(finished.err, "the engine says that its allocation has ended");
  CHECK_FALSE(has(finished.err, "ERROR"));
  check_complete(pooled.box, "results/s", 12, 8);
  CHECK_FALSE(has(pooled.events(), "\"event\":\"failure\""));
  check_nothing_left(pooled.box, "results/s");
}

TEST_CASE("a driver that resumes takes the agents of a killed one back, and starts no others") {
  Pooled pooled(sweep(24, "  max: 2\n", 60));
  pooled.start();
  CHECK(pooled.has_started());
  CHECK(pooled.has_agents(2));
  const std::vector<pid_t> agents = pooled.agents();
  pooled.run->signal(SIGKILL);
  pooled.run->wait();
  pooled.run.reset(new Running(pooled.box.start_tune({"resume", "results/s"})));
  CHECK(Sandbox::eventually(
      [&] {
        const std::string text = pooled.events();
        const std::size_t second = text.find("\"epoch\":2");
        return second != std::string::npos &&
               text.find("attempt_started", second) != std::string::npos;
      },
      seconds(40)));
  CHECK(pooled.agents() == agents);
  const Finished finished = pooled.finish();
  check_complete(pooled.box, "results/s", 24, 8);
  CHECK_FALSE(has(finished.err, "ERROR"));
  check_nothing_left(pooled.box, "results/s");
}

TEST_CASE("an agent that nobody knows is ended, and one that no trial needs leaves") {
  Pooled pooled(sweep(3, "  max: 3\n  idle: 1s\n", 150));
  pooled.start();
  CHECK(pooled.has_started());
  // One with a number that the journal does not have.
  const std::string prefix = [&] {
    for (const auto& entry : fs::directory_iterator(pooled.box.path() / "results/s/nodes")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("tune-")) return name.substr(0, name.rfind('-') + 1);
    }
    return std::string("none");
  }();
  pooled.box.write("queue", prefix + "77|99999999|PENDING|Priority|\n");
  const Finished finished = pooled.finish();
  check_complete(pooled.box, "results/s", 3, 8);
  CHECK(has(pooled.box.read("stopped"), "99999999"));
  check_nothing_left(pooled.box, "results/s");
}

TEST_CASE("an engine that never starts anything ends the run with its last words") {
  Pooled pooled(sweep(3, "  max: 1\n"));
  pooled.box.write("break", "");
  pooled.start();
  const Finished finished = pooled.run->wait(seconds(100));
  CHECK(finished.code == 2);
  CHECK_HAS(finished.err, "no module named cuda");
  CHECK_HAS(finished.err, "3 starts in a row were in vain");
  CHECK_FALSE(fs::exists(pooled.box.path() / "results/s"));
  CHECK(pooled.box.is_quiet());
}

TEST_CASE("a sweep that cannot go on leaves no agents, neither of its pool nor others") {
  // Nobody reports that metric, which is noticed at max_t.
  std::string text = sweep(6, "  max: 1\n", 300, "scheduler: {asha: {max_t: 8}}\n");
  text.replace(text.find("metric: mean_accuracy"), 21, "metric: mean_acuracy");
  text.replace(text.find("stop: {training_iteration: 8}\n"), 30, "");
  Pooled pooled(text);
  pooled.start();
  CHECK(pooled.has_started());
  pooled.box.set("TUNE_JOIN", lines_of(pooled.box.tune({"token", "results/s"}).out).at(0));
  Running by_hand(pooled.box.start_tune({"agent", "--cpus", "1"}));
  const Finished finished = pooled.run->wait(seconds(60));
  CHECK(finished.code == 2);
  CHECK_HAS(finished.err, "mean_acuracy");
  CHECK(pooled.joined() >= 2);
  const Finished over = by_hand.wait(seconds(lasting(5000) / 1000));
  CHECK(over.code == 0);
  CHECK_HAS(over.err, "the experiment is over");
  CHECK(pooled.has_agents(0));
  CHECK_FALSE(fs::exists(pooled.box.path() / "results/s/nodes/join"));
  check_nothing_left(pooled.box, "results/s");
}

TEST_CASE("a user pauses and resizes a pool that runs") {
  Pooled pooled(sweep(14, "  max: 1\n", 60));
  pooled.start();
  CHECK(pooled.has_started());
  const Finished paused = pooled.box.tune({"pool", "results/s", "--pause"});
  INFO(paused.err);
  CHECK(paused.code == 0);
  CHECK_HAS(paused.out, "no agents are asked for");
  const Finished wider = pooled.box.tune({"pool", "results/s", "--resume", "--max", "2"});
  CHECK_HAS(wider.out, "at most 2 agents");
  CHECK(pooled.has_agents(2));
  pooled.finish();
  check_complete(pooled.box, "results/s", 14, 8);
  CHECK_HAS(pooled.box.tune({"pool", "results/s", "--max", "2"}).err, "no driver runs it");
}

TEST_CASE("a host that a user drains gets an agent again when the pool is resumed") {
  Pooled pooled(
      yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 150}",
            .num_samples = 20,
            .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1}\nlisten: lo\n"
                    "pool: {engine: ssh, hosts: [alpha, beta], poll: 0.3, node: {cpu: 1}}\n"}));
  pooled.box.write("bin/ssh", kSshToHere);
  ::chmod((pooled.box.path() / "bin/ssh").c_str(), 0755);
  pooled.box.set("PATH", (pooled.box.path() / "bin").string() + ":" + std::getenv("PATH"));
  pooled.box.set("HOME", pooled.box.path().string());
  pooled.start();
  CHECK(pooled.has_started());
  CHECK(pooled.has_agents(2));
  CHECK(Sandbox::eventually([&] { return pooled.joined() == 3; }, seconds(30)));
  const std::string pid = ":" + std::to_string(pooled.agents().front());
  const std::vector<std::string> nodes = lines_of(pooled.box.tune({"nodes", "results/s"}).out);
  const auto line = std::ranges::find_if(nodes, [&](const auto& text) { return has(text, pid); });
  REQUIRE(line != nodes.end());
  const std::string allocation = line->substr(line->rfind(' ') + 1);
  CHECK(allocation.starts_with("tune-"));
  const Finished drained = pooled.box.tune({"drain", "results/s", allocation});
  CHECK_HAS(drained.out, "leaves when its trials have saved");
  CHECK_HAS(drained.out, "gets no more agents until tune pool DIR --resume");
  CHECK(pooled.has_agents(1));
  CHECK(Sandbox::eventually([&] { return has(pooled.events(), "\"state\":\"ended\""); }));
  CHECK_HAS(pooled.events(), "\"event\":\"pool\",\"drained\":\"");
  CHECK(pooled.joined() == 3);
  CHECK(pooled.box.tune({"pool", "results/s", "--resume"}).code == 0);
  CHECK(Sandbox::eventually([&] { return pooled.joined() == 4; }, seconds(30)));
  pooled.finish();
  check_complete(pooled.box, "results/s", 20, 8);
  check_nothing_left(pooled.box, "results/s");
}

TEST_CASE("groups of ranks run on two agents of a pool each, and no third one is asked for") {
  const std::string groups = "resources_per_trial: {cpu: 2, ranks: 2}\n";
  Pooled pooled(sweep(3, "  max: 3\n", 40, groups));
  const Finished shown = pooled.box.tune({"validate", "sweep.yaml", "--pool"});
  INFO(shown.err);
  CHECK_HAS(shown.out,
            "each trial needs 2 nodes: of at most 3, so many trials at the same time: 1");
  pooled.start();
  CHECK(pooled.has_started());
  CHECK(pooled.has_agents(2));
  CHECK_HAS(pooled.box.tune({"nodes", "results/s"}).out, "tune-");
  const Finished finished = pooled.finish();
  CHECK_FALSE(has(finished.err, "ERROR"));
  check_complete(pooled.box, "results/s", 3, 8);
  CHECK(pooled.joined() == 3);  // the driver's own, which runs no trials, and two
  CHECK_FALSE(has(pooled.events(), "\"event\":\"failure\""));
  check_nothing_left(pooled.box, "results/s");

  Pooled narrow(sweep(3, "  max: 1\n", 40, groups));
  const Finished refused = narrow.box.tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "pool/max");
  CHECK_HAS(refused.err, "a trial needs 2 nodes of {cpu: 1}; the pool has max: 1");
}

TEST_CASE("what a pool cannot do is refused before a trial starts, by key and line") {
  Pooled pooled(sweep(2, "  maxx: 2\n"));
  const auto refused = [&](const std::string& text) {
    pooled.box.write("sweep.yaml", text);
    const Finished finished = pooled.box.tune({"run", "sweep.yaml", "--name", "s"});
    CHECK(finished.code == 2);
    CHECK_FALSE(fs::exists(pooled.box.path() / "results/s"));
    return finished.err;
  };
  const std::string unknown = refused(sweep(2, "  maxx: 2\n"));
  CHECK_HAS(unknown, "pool/maxx");
  CHECK_HAS(unknown, "did you mean 'max'?");
  CHECK_HAS(unknown, "sweep.yaml:");
  CHECK_HAS(refused(sweep(2, "  max: 2\n", 40, "resources_per_trial: {cpu: 4}\n")), "pool/node");
  std::string missing = sweep(2, "");
  missing.replace(missing.find("./engine.sh, list"), 17, "./no_such_program");
  CHECK_HAS(refused(missing), "there is no program ./no_such_program");
  std::string wrong = sweep(2, "");
  wrong.replace(wrong.find("./engine.sh, list"), 17, "sh, -c, 'echo down >&2; exit 3', x");
  const std::string down = refused(wrong);
  CHECK_HAS(down, "pool: the engine command");
  CHECK_HAS(down, "down");
}

}  // namespace
}  // namespace tune
