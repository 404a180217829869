// Processes that the driver needs, and the driver, stand still: that is noticed in time and said
// clearly, or costs nothing. Nothing is lost, nothing stays behind.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>

#include "process/loss.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// A process that does not answer any more, and what is said of it.
void check_stopped(Victim victim, const std::string& expected) {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = start_or_resume(box);
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  const std::vector<pid_t> found = find_victim(box, driver, victim);
  REQUIRE(found.size() == 1);
  kill(found[0], SIGSTOP);
  const Finished finished = driver.wait(std::chrono::seconds(60));
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, expected);
  check_end_is_explained(box, finished);
  CHECK(box.is_quiet());
  check_goes_on(box);
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
  Running driver = start_or_resume(box);
  driver.ends_within(random_moment(random, tries));
  const std::vector<pid_t> found = find_victim(box, driver, victim);
  if (found.empty()) return false;
  kill(found[0], SIGSTOP);
  if (kills_driver) driver.signal(SIGKILL);
  // An agent may be silent for 20 s, a store for 10 s and while it starts for 30 s.
  const Finished finished = driver.wait(std::chrono::seconds(45));
  INFO(finished.err);
  CHECK(finished.code != -1);  // it was waited for long enough
  if (!kills_driver && finished.code != 0) check_end_is_explained(box, finished);
  check_goes_on(box);
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
    Running driver = start_or_resume(box);
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
    const std::vector<pid_t> found = find_victim(box, driver, victim);
    REQUIRE(found.size() == 1);
    kill(found[0], SIGSTOP);
    driver.signal(SIGKILL);
    driver.wait();
    check_goes_on(box);
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
  Running driver = start_or_resume(box);
  // The driver cannot be spoken to before it has its store.
  REQUIRE(Sandbox::eventually([&] { return !find_victim(box, driver, Victim::kAgent).empty(); }));
  kill(find_victim(box, driver, Victim::kAgent)[0], SIGSTOP);
  box.write("gate", "");
  const Finished finished = driver.wait();
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, "has said nothing for");
  CHECK(box.is_quiet());
  check_goes_on(box);
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

TEST_CASE("a driver that stood still for a while goes on") {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = start_or_resume(box);
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
