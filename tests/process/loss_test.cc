// Processes that the driver needs are killed or stopped at random moments: the run recovers, or
// ends with a clear error and goes on when it is resumed. Nothing is lost, nothing stays behind.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/random.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/random.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;

constexpr std::size_t kLossTrials = 8;
constexpr std::size_t kLossSteps = 6;
constexpr microseconds kUsualLength{500'000};

enum class Victim { kAgent, kZygote, kWorker, kStore };

std::string loss_sweep() {
  return yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 15}",
               .num_samples = kLossTrials,
               .rest = "stop: {training_iteration: 6}\ncheckpoint: {frequency: 2}\n"
                       "max_failures: 3\nstore_patience_s: 10\n"});
}

std::vector<pid_t> find(const Sandbox& box, const Running& driver, Victim victim) {
  std::vector<pid_t> found;
  if (victim == Victim::kStore) return box.processes("redis-server");
  if (victim == Victim::kAgent) {  // a fork of the driver
    found = box.processes(std::string("\0--cpus\0", 8));
    std::erase(found, driver.pid());
    std::sort(found.begin(), found.end());  // later ones are about to become something else
    found.resize(std::min<std::size_t>(found.size(), 1));
    return found;
  }
  // Workers are forked from the zygote and share its command line: it is the oldest.
  found = box.processes("tune-worker");
  std::sort(found.begin(), found.end());
  if (victim == Victim::kZygote) found.resize(std::min<std::size_t>(found.size(), 1));
  if (victim == Victim::kWorker && !found.empty()) found.erase(found.begin());
  return found;
}

bool has_begun(const Sandbox& box) {
  return fs::exists(box.path() / "results/s/experiment.json");
}

Running start(const Sandbox& box) {
  if (has_begun(box)) return box.start_tune({"resume", "results/s", "--quiet"});
  return box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--cpus", "3"});
}

// An experiment that goes on has said how; one that never began has left its name free.
void check_error(const Sandbox& box, const Finished& finished) {
  INFO(finished.err);
  CHECK_HAS(finished.err, "error: ");
  CHECK((finished.code == 3 || finished.code == 2));
  if (!has_begun(box)) return;
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "tune resume results/s");
}

void check_resumes(const Sandbox& box) {
  const Finished resumed = start(box).wait();
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", kLossTrials, kLossSteps);
  check_nothing_left(box, "results/s");
}

// Some are drawn from longer times: a busy machine may take long to start what is to be lost.
microseconds random_moment(RandomStream& random, int tries) {
  return microseconds(random.integer(0, (1 + tries % 5) * kUsualLength.count()));
}

// Whether the victim was there at that moment.
bool kill_one(Victim victim, RandomStream& random, int tries) {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = start(box);
  driver.ends_within(random_moment(random, tries));
  const std::vector<pid_t> found = find(box, driver, victim);
  if (!found.empty()) {
    kill(found[random.next() % found.size()], SIGKILL);
  }
  const Finished finished = driver.wait(std::chrono::seconds(30));
  INFO(finished.err);
  CHECK(finished.code != -1);  // it was waited for long enough
  CHECK(box.is_quiet());
  if (finished.code != 0) check_error(box, finished);
  if (victim == Victim::kWorker || victim == Victim::kZygote) CHECK(finished.code == 0);
  check_resumes(box);
  return !found.empty();
}

TEST_CASE("agents, zygotes, workers and stores killed at any moment cost nothing but time") {
  const int kills = share_of_kills(4);
  for (const Victim victim : {Victim::kAgent, Victim::kZygote, Victim::kWorker, Victim::kStore}) {
    CAPTURE(static_cast<int>(victim));
    RandomStream random(test_seed(), "loss", static_cast<std::uint64_t>(victim));
    int done = 0;
    for (int tries = 0; done < kills && tries < 10 * kills; ++tries) {
      CAPTURE(tries);
      done += kill_one(victim, random, tries) ? 1 : 0;
    }
    CHECK(done == kills);
  }
}

// A process that does not answer any more, and what is said of it.
void check_stopped(Victim victim, const std::string& expected) {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = start(box);
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  const std::vector<pid_t> found = find(box, driver, victim);
  REQUIRE(found.size() == 1);
  kill(found[0], SIGSTOP);
  const Finished finished = driver.wait(std::chrono::seconds(60));
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, expected);
  check_error(box, finished);
  CHECK(box.is_quiet());
  check_resumes(box);
}

TEST_CASE("a stopped store ends the run with a clear error, and resume goes on") {
  check_stopped(Victim::kStore, "the store");
}

TEST_CASE("a stopped agent ends the run with a clear error, and resume goes on") {
  check_stopped(Victim::kAgent, "has said nothing for");
}

// Stops one at a random moment, also while all start or end, and kills the driver or lets it find
// out. Whether there was one to stop.
bool stop_one(Victim victim, bool kills_driver, RandomStream& random, int tries) {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = start(box);
  driver.ends_within(random_moment(random, tries));
  const std::vector<pid_t> found = find(box, driver, victim);
  if (found.empty()) return false;
  kill(found[0], SIGSTOP);
  if (kills_driver) driver.signal(SIGKILL);
  // An agent may be silent for 20 s, a store for 10 s and while it starts for 30 s.
  const Finished finished = driver.wait(std::chrono::seconds(45));
  INFO(finished.err);
  CHECK(finished.code != -1);  // it was waited for long enough
  if (!kills_driver && finished.code != 0) check_error(box, finished);
  check_resumes(box);
  CHECK(box.is_quiet());
  return true;
}

TEST_CASE("agents and stores that stop at any moment are noticed, also when the driver is killed") {
  for (const bool kills_driver : {true, false}) {
    CAPTURE(kills_driver);
    const int stops = share_of_kills(kills_driver ? 4 : 1);
    for (const Victim victim : {Victim::kStore, Victim::kAgent}) {
      CAPTURE(static_cast<int>(victim));
      RandomStream random(test_seed(), kills_driver ? "orphans" : "stops",
                          static_cast<std::uint64_t>(victim));
      int done = 0;
      for (int tries = 0; done < stops && tries < 10 * stops; ++tries) {
        CAPTURE(tries);
        done += stop_one(victim, kills_driver, random, tries) ? 1 : 0;
      }
      CHECK(done == stops);
    }
  }
}

TEST_CASE("a driver killed while its store or agent stands still can be resumed") {
  for (const Victim victim : {Victim::kStore, Victim::kAgent}) {
    CAPTURE(static_cast<int>(victim));
    Sandbox box;
    box.write("sweep.yaml", loss_sweep());
    Running driver = start(box);
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
    const std::vector<pid_t> found = find(box, driver, victim);
    REQUIRE(found.size() == 1);
    kill(found[0], SIGSTOP);
    driver.signal(SIGKILL);
    driver.wait();
    check_resumes(box);
    CHECK(box.is_quiet());
  }
}

TEST_CASE("an agent that never says a word is not waited for without end") {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  box.write("slow-redis",
            "#!/bin/sh\nuntil [ -e gate ]; do sleep 0.02; done\nexec redis-server \"$@\"\n");
  fs::permissions(box.path() / "slow-redis", fs::perms::owner_all);
  box.set("TUNE_REDIS_SERVER", box.path() / "slow-redis");
  Running driver = start(box);
  // The driver cannot be spoken to before it has its store.
  REQUIRE(Sandbox::eventually([&] { return !find(box, driver, Victim::kAgent).empty(); }));
  kill(find(box, driver, Victim::kAgent)[0], SIGSTOP);
  box.write("gate", "");
  const Finished finished = driver.wait();
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "has said nothing for");
  CHECK(box.is_quiet());
  check_resumes(box);
}

TEST_CASE("a plugin whose loading hangs is waited for by name") {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  box.write("hung-worker", "#!/bin/sh\nexec sleep 300\n");
  fs::permissions(box.path() / "hung-worker", fs::perms::owner_all);
  box.set("TUNE_WORKER", box.path() / "hung-worker");
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  Running validate = box.start_tune({"validate", "sweep.yaml"});
  CHECK_FALSE(run.ends_within(std::chrono::seconds(14)));  // there is a word every 10 s
  for (Running* one : {&run, &validate}) {
    one->signal(SIGTERM);
    const Finished finished = one->wait();
    INFO(finished.err);
    CHECK(finished.code == 128 + SIGTERM);
    CHECK_HAS(finished.out + finished.err, "synthetic.so for 10 s (pid ");
  }
  CHECK(box.is_quiet());
}

TEST_CASE("a store elsewhere that is started again in time costs nothing") {
  Sandbox box;
  const std::string socket = (box.path() / "tmp/r").string();
  const auto start_store = [&] {
    return box.start({"redis-server", "--port", "0", "--unixsocket", socket, "--appendonly", "yes",
                      "--appendfsync", "always", "--dir", box.path()});
  };
  box.write("sweep.yaml", loss_sweep());
  std::unique_ptr<Running> server(new Running(start_store()));
  REQUIRE(Sandbox::eventually([&] { return fs::exists(socket); }));
  Running driver = box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--cpus", "3",
                                   "--store", "unix://" + socket});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  server.reset();  // killed
  driver.ends_within(std::chrono::milliseconds(300));
  server.reset(new Running(start_store()));
  const Finished finished = driver.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", kLossTrials, kLossSteps);
}

TEST_CASE("a private store that is killed again and again costs nothing") {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3"});
  for (const std::size_t results : {3, 12, 24}) {
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", results); }));
    const std::vector<pid_t> found = find(box, driver, Victim::kStore);
    REQUIRE(found.size() == 1);
    kill(found[0], SIGKILL);
  }
  const Finished finished = driver.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(finished.out + finished.err, "killed by signal 9 (SIGKILL)");
  CHECK_HAS(finished.out + finished.err, "the store is started again");
  check_complete(box, "results/s", kLossTrials, kLossSteps);
  check_nothing_left(box, "results/s");
}

// A server of its own, and a sweep that uses it.
struct Elsewhere {
  explicit Elsewhere(const std::string& patience) {
    std::string text = loss_sweep();
    text.replace(text.find("store_patience_s: 10"), 20, "store_patience_s: " + patience);
    box.write("sweep.yaml", text);
    start();
    driver.reset(new Running(box.start_tune(
        {"run", "sweep.yaml", "--name", "s", "--cpus", "3", "--store", "unix://" + socket})));
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  }
  void start() {
    std::error_code none;
    fs::remove(socket, none);
    server.reset(new Running(
        box.start({"redis-server", "--port", "0", "--unixsocket", socket, "--appendonly", "yes",
                   "--appendfsync", "always", "--dir", box.path()})));
    REQUIRE(Sandbox::eventually([&] { return fs::exists(socket); }));
  }
  Sandbox box;
  std::string socket = (box.path() / "tmp/r").string();
  std::unique_ptr<Running> server;
  std::unique_ptr<Running> driver;
};

TEST_CASE("a store elsewhere that is silent for a while is waited for") {
  for (const bool is_killed : {false, true}) {
    CAPTURE(is_killed);
    Elsewhere elsewhere("60");
    is_killed ? elsewhere.server.reset() : elsewhere.server->signal(SIGSTOP);
    CHECK_FALSE(elsewhere.driver->ends_within(std::chrono::seconds(3)));
    is_killed ? elsewhere.start() : elsewhere.server->signal(SIGCONT);
    const Finished finished = elsewhere.driver->wait();
    INFO(finished.err);
    CHECK(finished.code == 0);
    CHECK_HAS(finished.out + finished.err, "waiting up to 60 s for it");
    CHECK_HAS(finished.out + finished.err, "the store answers again");
    check_complete(elsewhere.box, "results/s", kLossTrials, kLossSteps);
  }
}

TEST_CASE("a store elsewhere that stays away ends the run when its patience is over") {
  Elsewhere elsewhere("2");
  elsewhere.server.reset();
  const Finished finished = elsewhere.driver->wait();
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, elsewhere.socket);
  CHECK_HAS(finished.err, "waited for 2 s");
  CHECK_HAS(finished.err, "tune resume results/s");
  elsewhere.start();
  const Finished resumed = elsewhere.box.tune({"resume", "results/s", "--quiet"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(elsewhere.box, "results/s", kLossTrials, kLossSteps);
}

TEST_CASE("a signal is obeyed while the store does not answer") {
  for (const int signals : {1, 2}) {
    CAPTURE(signals);
    Elsewhere elsewhere("600");
    elsewhere.server->signal(SIGSTOP);
    CHECK_FALSE(elsewhere.driver->ends_within(std::chrono::seconds(2)));
    elsewhere.driver->signal(SIGTERM);
    if (signals == 2) {
      CHECK_FALSE(elsewhere.driver->ends_within(std::chrono::milliseconds(500)));
      elsewhere.driver->signal(SIGTERM);
    }
    const Finished finished = elsewhere.driver->wait(std::chrono::seconds(40));
    INFO(finished.err);
    CHECK(finished.code == 128 + SIGTERM);
    elsewhere.server->signal(SIGCONT);
    const Finished resumed = elsewhere.box.tune({"resume", "results/s", "--quiet"});
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    check_complete(elsewhere.box, "results/s", kLossTrials, kLossSteps);
  }
}

TEST_CASE("a driver that stood still for a while goes on") {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = start(box);
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  driver.signal(SIGSTOP);
  driver.ends_within(std::chrono::seconds(3));  // longer than messages wait to be sent again
  driver.signal(SIGCONT);
  const Finished finished = driver.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", kLossTrials, kLossSteps);
  check_nothing_left(box, "results/s");
}

}  // namespace
}  // namespace tune
