// Processes that the driver needs are killed at random moments: the run recovers, or ends with a
// clear error and goes on when it is resumed. Nothing is lost, nothing stays behind.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>

#include "process/loss.h"

namespace tune {
namespace {

// Whether the victim was there at that moment.
bool kill_one(Victim victim, RandomStream& random, int tries) {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = start_or_resume(box);
  driver.ends_within(random_moment(random, tries));
  const std::vector<pid_t> found = find_victim(box, driver, victim);
  if (!found.empty()) {
    kill(found[random.next() % found.size()], SIGKILL);
  }
  const Finished finished = driver.wait(std::chrono::seconds(30));
  INFO(finished.err);
  CHECK(finished.code != -1);  // it was waited for long enough
  CHECK(box.is_quiet());
  if (finished.code != 0) check_end_is_explained(box, finished);
  if (victim == Victim::kWorker || victim == Victim::kZygote) CHECK(finished.code == 0);
  check_goes_on(box);
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

TEST_CASE("a private store that is killed again and again costs nothing") {
  Sandbox box;
  box.write("sweep.yaml", loss_sweep());
  Running driver = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "3"});
  int killed = 0;
  for (const std::size_t results : {3, 12, 24}) {
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", results); }));
    std::vector<pid_t> found;
    REQUIRE(Sandbox::eventually([&] {  // the one before may just be started again
      found = find_victim(box, driver, Victim::kStore);
      return found.size() == 1 || has_results(box, "results/s", kLossTrials * kLossSteps);
    }));
    if (found.empty()) break;  // on a busy machine the sweep may be over by now
    killed += kill(found[0], SIGKILL) == 0 ? 1 : 0;
  }
  CHECK(killed >= 1);
  const Finished finished = driver.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(finished.out + finished.err, "killed by signal 9 (SIGKILL)");
  CHECK_HAS(finished.out + finished.err, "the store is started again");
  check_complete(box, "results/s", kLossTrials, kLossSteps);
  check_nothing_left(box, "results/s");
}

}  // namespace
}  // namespace tune
